// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* kvmexit: why virtual processors leave their guests, how often, and for how long. */
#include "lib/extreme.bpf.h"
#include "lib/filter.bpf.h"
#include "cpu/kvmexit.h"

OPT(bool, timed);
OPT(bool, of_process);  /* by process, */
OPT(bool, all_threads); /* and by thread after all */
OPT(bool, some_vcpu);
OPT(__u32, only_vcpu);

/* The start of the tracepoint's record. */
struct kvm_exit_ctx {
	u64 common;
	u32 reason; /* on arm64 what ended the run, */
	u32 class;  /* and the class of the exception; only there */
	u64 rip;    /* from here on as x86 has it */
	u32 isa;
	u32 pad;
	u64 info[2];
	u32 interrupt, error;
	u32 vcpu;
};

struct left {
	u64 start; /* 0: in the guest, or not wanted */
	struct kvmexit_key key;
};

TASK_SLOT(struct left);
CPU_TABLE(exits, struct kvmexit_key, struct kvmexit_sums)

inline_ void exited(struct kvm_exit_ctx *ctx)
{
	struct kvmexit_key key = { .reason = ctx->reason };
	struct kvmexit_sums *sums;
	struct left *left;

	if (!keep_current())
		return;
#ifdef __TARGET_ARCH_x86
	key.isa = ctx->isa;
	key.vcpu = ctx->vcpu;
#else
	key.reason |= ctx->class << 16;
#endif
	if (some_vcpu && key.vcpu != only_vcpu) {
		count(LEDGER_FILTERED);
		return;
	}
	key.pid = current_tgid();
	if (!of_process || all_threads)
		key.tid = current_tid();
	else
		key.vcpu = 0;
	sums = exits_row(&key);
	if (!sums)
		return;
	sums->count++;
	left = timed ? current_slot(true) : NULL;
	if (left) {
		left->key = key;
		left->start = bpf_ktime_get_ns();
	}
}

inline_ void entered(void)
{
	struct left *left = current_slot(false);
	struct kvmexit_sums *sums;
	struct kvmexit_key key;
	u64 ns;

	if (!left || !left->start)
		return;
	ns = since(left->start, bpf_ktime_get_ns());
	left->start = 0;
	key = left->key;
	sums = exits_row(&key);
	if (!sums)
		return;
	sums->timed++;
	sums->total_ns += ns;
	extreme_add(&sums->longest, ns);
}

/* With 0, perf would no longer count the event for its other users. */
#define PERF_SEES_IT 1

SEC("tracepoint/kvm/kvm_exit")
int on_exit(struct kvm_exit_ctx *ctx)
{
	exited(ctx);
	return PERF_SEES_IT;
}

SEC("tracepoint/kvm/kvm_entry")
int on_entry(void *ctx)
{
	entered();
	return PERF_SEES_IT;
}
