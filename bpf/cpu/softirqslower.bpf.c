// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* softirqslower: softirqs that wait long before they run, or run long. */
#include "lib/core/cpu.bpf.h"
#include "lib/core/emit.bpf.h"
#include "cpu/softirqslower.h"

RECORD(softirqslower_event);

OPT(__u64, min_ns);
OPT(__u32, wanted_stage); /* enum softirqslower_stage; 0: both */

/* Per CPU and vector. A running softirq may be raised again. */
struct softirq {
	u64 raised; /* 0: not raised, or not seen */
	u64 start;  /* 0: not running, or filtered */
	u64 ran;    /* when it last started */
	u32 raised_by;
	u32 pad;
	char raised_comm[COMM_LEN];
	/* For the run: */
	u32 run_raised_by;
	u32 run_pad;
	char run_raised_comm[COMM_LEN];
};

struct softirq_cpu {
	struct softirq at[SOFTIRQ_SLOTS];
};

CPU_SLOTS(cpus, struct softirq_cpu);

inline_ struct softirq *softirq_of(u64 *ctx)
{
	struct softirq_cpu *cpu = cpu_slot(&cpus);

	return cpu ? &cpu->at[(u32)ctx[0] & (SOFTIRQ_SLOTS - 1)] : NULL;
}

inline_ int show(u64 *ctx, struct softirq *s, enum softirqslower_stage stage, u64 since_ns, u64 now)
{
	struct softirqslower_event *e;

	if (wanted_stage && stage != wanted_stage)
		return 0;
	if (since(since_ns, now) < min_ns)
		return filtered();
	e = emit_begin_stack(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = now;
	e->latency_ns = since(since_ns, now);
	identify_current(&e->who);
	e->stage = stage;
	e->vector = ctx[0];
	e->cpu = bpf_get_smp_processor_id();
	e->raised_by = s->run_raised_by;
	__builtin_memcpy(e->raised_comm, s->run_raised_comm, COMM_LEN);
	return emit_end_stack(ctx, e, sizeof(*e));
}

TRACING(on_exit, "tp_btf/softirq_exit")
{
	struct softirq *s = softirq_of(ctx);
	u64 now = bpf_ktime_get_ns(), start;

	if (!s || !s->start)
		return 0;
	start = s->start;
	s->start = 0;
	return show(ctx, s, STAGE_RUN, start, now);
}

TRACING(on_entry, "tp_btf/softirq_entry")
{
	struct softirq *s = softirq_of(ctx);
	u64 now = bpf_ktime_get_ns(), raised, before;

	if (!s)
		return 0;
	if (end_missed(s->start))
		count(LEDGER_UNMATCHED);
	raised = s->raised;
	s->run_raised_by = raised ? s->raised_by : 0;
	if (raised)
		__builtin_memcpy(s->run_raised_comm, s->raised_comm, COMM_LEN);
	else
		__builtin_memset(s->run_raised_comm, 0, COMM_LEN);
	s->raised = 0;
	s->start = 0;
	before = s->ran;
	s->ran = now;
	if (!keep_here())
		return 0;
	if (raised)
		show(ctx, s, STAGE_WAIT, raised, now);
	else if (wanted_stage != STAGE_RUN && end_missed(before))
		count(LEDGER_UNMATCHED); /* raised again just before it started */
	s->start = bpf_ktime_get_ns();
	return 0;
}

TRACING(on_raise, "tp_btf/softirq_raise")
{
	struct softirq *s = softirq_of(ctx);

	/* Raised again before it runs: it waits since the first time. */
	if (!s || s->raised)
		return 0;
	s->raised_by = current_tgid();
	bpf_get_current_comm(s->raised_comm, sizeof(s->raised_comm));
	s->raised = bpf_ktime_get_ns();
	return 0;
}
