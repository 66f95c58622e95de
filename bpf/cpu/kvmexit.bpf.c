// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* kvmexit: reasons, number and duration of exits of virtual processors from their guests. */
#include "lib/block/command.bpf.h"
#include "lib/aggregate/extreme.bpf.h"
#include "lib/core/filter.bpf.h"
#include "cpu/kvmexit.h"

OPT(bool, timed);
OPT(bool, of_process);  /* by process, */
OPT(bool, all_threads); /* and also by thread */
OPT(bool, some_vcpu);
OPT(__u32, only_vcpu);

/* Offsets of members of the tracepoint's record: x86 has the next two, arm64 also the last one. */
OPT(__u32, at_reason); /* on arm64 the exit code */
OPT(__u32, at_isa);
OPT(__u32, at_vcpu);
OPT(__u32, at_class); /* exception class */

/* A direct load costs less, but needs a constant offset. */
#define MEMBER(ctx, at, usual) \
	((at) == (usual) ? *(u32 *)((char *)(ctx) + (usual)) : record_u32(ctx, at))

struct left {
	u64 start; /* 0: in the guest, or not wanted */
	struct kvmexit_key key;
};

TASK_SLOT(struct left);
CPU_TABLE(exits, struct kvmexit_key, struct kvmexit_sums)

inline_ int exited(void *ctx)
{
	struct kvmexit_key key = {};
	struct kvmexit_sums *sums;
	struct left *left;

	if (!keep_current())
		return 0;
	key.reason = MEMBER(ctx, at_reason, 8);
#ifdef __TARGET_ARCH_x86
	key.isa = MEMBER(ctx, at_isa, 24);
	key.vcpu = MEMBER(ctx, at_vcpu, 56);
#else
	key.reason |= MEMBER(ctx, at_class, 12) << 16;
#endif
	if (some_vcpu && key.vcpu != only_vcpu)
		return filtered();
	key.pid = current_tgid();
	if (!of_process || all_threads)
		key.tid = current_tid();
	else
		key.vcpu = 0;
	sums = exits_row(&key);
	if (!sums)
		return 0;
	sums->count++;
	left = timed ? current_slot(true) : NULL;
	if (left) {
		left->key = key;
		left->start = bpf_ktime_get_ns();
	}
	return 0;
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

/* With 0, perf would not count the event for other users. */
#define PERF_SEES_IT 1

SEC("tracepoint/kvm/kvm_exit")
int on_exit(void *ctx)
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
