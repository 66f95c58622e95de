/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs at entries and returns of the targets' calls; the tool has TRACED_CALLS and
 * defines call_begins() and call_ends(). Returns come first, as they must be attached first.
 *
 * Contexts: wherever the targets are; an interrupt may nest.
 */
#ifndef CORETAP_EACH_CALL_BPF_H
#define CORETAP_EACH_CALL_BPF_H

#include "lib/targets/each_function.bpf.h"
#include "lib/targets/traced_calls.bpf.h"

inline_ void call_begins(const struct call_place *at, struct traced_call *c);
inline_ void call_ends(const struct call_place *at, struct traced_call *c, u64 ns);

inline_ int call_entered(const struct call_place *at)
{
	struct traced_call *c;

	if (!target_wanted(at->id))
		return 0;
	c = call_enters(at);
	if (!c)
		return 0;
	call_begins(at, c);
	c->start = bpf_ktime_get_ns();
	return 0;
}

inline_ int call_returned(const struct call_place *at)
{
	u64 now = bpf_ktime_get_ns(), *depth, left;
	struct traced_call *c = call_returns(at, &depth, &left);

	if (!c)
		return 0;
	call_ends(at, c, since(c->start, now));
	barrier();
	*depth = left;
	return 0;
}

inline_ int function_entered(struct pt_regs *ctx, u64 id)
{
	struct call_place at = { .ctx = ctx, .regs = ctx, .id = id, .sp = sp_after_return(ctx) };

	return call_entered(&at);
}

inline_ int function_returned(struct pt_regs *ctx, u64 id)
{
	struct call_place at = { .ctx = ctx, .regs = ctx, .id = id, .sp = PT_REGS_SP(ctx) };

	at.result = PT_REGS_RC(ctx);
	return call_returned(&at);
}

SEC("tp_btf/sys_exit")
int target_sys_exit(u64 *ctx)
{
	struct call_place at = {
		.ctx = ctx, .regs = (void *)ctx[0], .sp = SYSTEM_CALL, .result = ctx[1]
	};

	s32 number = call_number(at.regs);

	/* A return from a signal handler has no call number. */
	at.id = number == NO_CALL ? ANY_CALL : target_call(target_ends, number, at.regs);
	if (number != NO_CALL && at.id >= target_count)
		return 0;
	return call_returned(&at);
}

SEC("tp_btf/sys_enter")
int target_sys_enter(u64 *ctx)
{
	struct call_place at = { .ctx = ctx, .regs = (void *)ctx[0], .sp = SYSTEM_CALL };

	at.id = target_call(target_entries, (s32)ctx[1], at.regs);
	return call_entered(&at);
}

#endif
