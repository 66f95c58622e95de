// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* trace: calls of functions, tracepoints and USDT probes, with values requested by command line.
 */
#include "lib/stack/task_walk.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "lib/targets/each_place.bpf.h"
#include "lib/core/user_code.bpf.h"
#include "general/trace.h"

RECORD(trace_event);

OPT_OR(__u32, values_at, sizeof(struct trace_event));
OPT_OR(__u64, record_bytes, sizeof(struct trace_event) + sizeof(struct expression_out));
OPT(bool, names_code); /* a message has %U */

TRACED_CALLS(struct entered_call, )

/* An interrupt during the walk may be traced, too. */
inline_ u64 user_stack_now(void *ctx)
{
	struct call_stack *all = call_stack(true);
	u64 id;

	if (!all || all->walking)
		return counted(LEDGER_STACK_FAILED);
	all->walking = 1;
	id = stack_of_user(ctx, 0);
	all->walking = 0;
	return id;
}

inline_ int at_wanted_place(void *ctx, struct expression_in *in, u64 id)
{
	u64 user_stack = stack_user ? user_stack_now(ctx) : 0;
	struct expression_out *out;
	struct trace_event *e;

	e = emit_room(record_bytes, sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->user_stack = user_stack;
	e->target = id;
	e->cpu = bpf_get_smp_processor_id();
	e->values_at = values_at;
	identify_current(&e->who);
	if (names_code)
		describe_code(&e->code, 0);
	if (stack_on) {
		struct stack *s = (struct stack *)(e + 1);

		__builtin_memset(s, 0, 8 /* the part before the frames */);
		emit_stack(ctx, s);
	}
	out = (struct expression_out *)((char *)e + values_at);
	__builtin_memset(out, 0, sizeof(*out));
	expression_values(in, out, id);
	if (out->cut)
		count(LEDGER_TRUNCATED);
	if (names_code)
		emit_end_now(e);
	else
		emit_end(e);
	return 0;
}
