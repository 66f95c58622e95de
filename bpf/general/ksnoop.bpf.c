// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ksnoop: arguments and results of kernel functions, with all struct members. */
#include "general/call_values.bpf.h"
#include "general/ksnoop.h"

RECORD(ksnoop_event);

OPT_OR(__u64, record_bytes, sizeof(struct ksnoop_event));
OPT_OR(__u64, values_at, __builtin_offsetof(struct ksnoop_event, out));

TRACED_CALLS(struct traced_call, )

inline_ void read_values(struct ksnoop_event *e, struct expression_in *in, u64 id)
{
	expression_values(in, (void *)e + values_at, id);
}

/* The values at entry, or at a tracepoint. */
inline_ void enter(struct ksnoop_event *e, struct expression_in *in, u64 id)
{
	__builtin_memset(e, 0, sizeof(*e));
	identify_current(&e->who);
	e->target = id;
	e->cpu = bpf_get_smp_processor_id();
	read_values(e, in, id);
	e->head.time_ns = bpf_ktime_get_ns();
}

inline_ int call_begins(const struct call_place *at, struct expression_in *in)
{
	struct ksnoop_event *e;
	struct traced_call *c;

	if (!target_wanted(at->id))
		return 0;
	expression_inputs(in, at->ctx);
	if (!expression_wanted(in, at->id))
		return 0;
	if (waits_for_return(at->id)) {
		c = call_enters(at);
		e = c ? call_values_begin(c) : NULL;
		if (e)
			enter(e, in, at->id);
		return 0;
	}
	e = emit_room(record_bytes, sizeof(*e));
	if (!e)
		return 0;
	enter(e, in, at->id);
	if (e->out.cut)
		count(LEDGER_TRUNCATED);
	return emit_end(e);
}

inline_ void leave(struct ksnoop_event *e, struct expression_in *in, u64 id, u64 now)
{
	e->latency_ns = since(e->head.time_ns, now);
	e->returned = 1;
	read_values(e, in, id);
	if (e->out.cut)
		count(LEDGER_TRUNCATED);
	emit_copy(e, record_bytes);
}

inline_ int call_ends(const struct call_place *at, struct expression_in *in)
{
	u64 now = bpf_ktime_get_ns(), id = at->id, *depth, left;
	struct call_place entry = *at;
	struct ksnoop_event *e;
	struct traced_call *c;

	if (id >= target_count)
		return 0;
	entry.id = id - 1;
	c = call_returns(&entry, &depth, &left);
	if (!c)
		return 0;
	e = call_values_of(c);
	if (e) {
		expression_inputs(in, at->ctx);
		if (expression_wanted(in, id))
			leave(e, in, id, now);
		call_values_done(c);
	}
	barrier();
	*depth = left;
	return 0;
}

/* Returns come first, as they must be attached first. */
SEC("target/kernel.return")
int target_kernel_return(struct pt_regs *ctx)
{
	struct expression_in in = { .result = PT_REGS_RC(ctx) };
	struct call_place at = {
		.ctx = ctx, .regs = ctx, .id = target_id(ctx, TARGET_KERNEL), .sp = SP_OF(ctx)
	};

	return call_ends(&at, &in);
}

SEC("target/kernel")
int target_kernel(struct pt_regs *ctx)
{
	struct expression_in in = {};
	struct call_place at = { .ctx = ctx,
				 .regs = ctx,
				 .id = target_id(ctx, TARGET_KERNEL),
				 .sp = sp_after_return(ctx) };

	if (expression_uses & EXPRESSION_USES_ARGUMENTS)
		call_registers(ctx, in.arguments);
	return call_begins(&at, &in);
}

SEC("target/event")
int target_event(void *ctx)
{
	struct expression_in in = {};
	struct call_place at = { .ctx = ctx, .id = target_id(ctx, TARGET_EVENT) };

	if (expression_uses & EXPRESSION_USES_RECORD)
		in.record = (u64)ctx;
	return call_begins(&at, &in);
}

TRACING(target_sys_exit, "tp_btf/sys_exit")
{
	struct pt_regs *regs = (void *)ctx[0];
	struct expression_in in = { .result = ctx[1] };
	struct call_place at = { .ctx = ctx, .regs = regs, .sp = SYSTEM_CALL };

	at.id = target_call(target_ends, call_number(regs), regs);
	return call_ends(&at, &in);
}

TRACING(target_sys_enter, "tp_btf/sys_enter")
{
	struct pt_regs *regs = (void *)ctx[0];
	struct expression_in in = {};
	struct call_place at = { .ctx = ctx, .regs = regs, .sp = SYSTEM_CALL };

	at.id = target_call(target_entries, (s32)ctx[1], regs);
	if (expression_uses & EXPRESSION_USES_ARGUMENTS)
		call_arguments(regs, false, in.arguments);
	return call_begins(&at, &in);
}
