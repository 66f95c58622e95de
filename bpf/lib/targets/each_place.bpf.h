/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs at the places that the command line names, with values of expressions; the hook is
 * traced_by_word(). The tool has TRACED_CALLS of struct entered_call, and defines
 * at_wanted_place(). Returns come first, as they must be attached first.
 *
 * Contexts: wherever the targets are; an interrupt may nest.
 */
#ifndef CORETAP_EACH_PLACE_BPF_H
#define CORETAP_EACH_PLACE_BPF_H

#include "lib/targets/each_function.bpf.h"
#include "lib/targets/expression.bpf.h"

struct entered_call {
	struct traced_call call;
	u64 arguments[6];
};

inline_ int at_wanted_place(void *ctx, struct expression_in *in, u64 id);

inline_ int pair_entered(const struct call_place *at, const u64 *arguments)
{
	struct traced_call *c;

	if (!target_wanted(at->id))
		return 0;
	c = call_enters(at);
	if (!c)
		return 0;
	__builtin_memcpy(((struct entered_call *)c)->arguments, arguments,
			 sizeof(((struct entered_call *)c)->arguments));
	c->start = bpf_ktime_get_ns();
	return 0;
}

/* False: its entry was filtered or not seen. */
inline_ bool pair_returned(const struct call_place *at, struct expression_in *in)
{
	u64 now = bpf_ktime_get_ns(), *depth, left;
	struct traced_call *c = call_returns(at, &depth, &left);

	if (!c)
		return false;
	in->latency = since(c->start, now);
	__builtin_memcpy(in->entry, ((struct entered_call *)c)->arguments, sizeof(in->entry));
	barrier();
	*depth = left;
	return true;
}

inline_ int at_place(void *ctx, struct expression_in *in, u64 id)
{
	if (!target_wanted(id))
		return 0;
	expression_inputs(in, ctx);
	return expression_wanted(in, id) ? at_wanted_place(ctx, in, id) : 0;
}

inline_ int place_entered(const struct call_place *at, const bool system_call)
{
	struct expression_in in = {};

	if (expression_pairs || expression_uses & EXPRESSION_USES_ARGUMENTS)
		place_arguments(at, system_call, in.arguments);
	return is_paired(at->id) ? pair_entered(at, in.arguments) : at_place(at->ctx, &in, at->id);
}

inline_ int place_returned(const struct call_place *at, const bool system_call)
{
	struct expression_in in = { .result = at->result };

	if (system_call && expression_uses & EXPRESSION_USES_ARGUMENTS)
		call_arguments(at->regs, false, in.arguments);
	if (is_paired(at->id) && !pair_returned(at, &in))
		return 0;
	return at_place(at->ctx, &in, at->id);
}

inline_ int at_event(void *ctx, u64 id)
{
	struct expression_in in = {};

	if (expression_uses & EXPRESSION_USES_RECORD)
		in.record = (u64)ctx;
	return at_place(ctx, &in, id);
}

ON_USER_FUNCTION("target/usdt", target_usdt, at_event(ctx, target_id(ctx, TARGET_USER)))

SEC("target/event")
int target_event(void *ctx)
{
	return at_event(ctx, target_id(ctx, TARGET_EVENT));
}

#endif
