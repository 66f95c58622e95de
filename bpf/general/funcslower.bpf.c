// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* funcslower: slow function calls. */
#include "lib/stack/task_walk.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "lib/targets/each_call.bpf.h"
#include "general/funcslower.h"

OPT_OR(__u64, min_ns, 1000000);
OPT(__u32, arguments); /* number of arguments shown */

struct entered {
	struct traced_call call;
	u64 arguments[FUNCSLOWER_ARGUMENTS];
};

TRACED_CALLS(struct entered, )

inline_ void call_begins(const struct call_place *at, struct traced_call *c)
{
	u64 *to = ((struct entered *)c)->arguments;

	if (arguments)
		place_arguments(at, at->sp == SYSTEM_CALL, to);
}

/* An interrupt during the walk may also end a slow call. */
inline_ u64 user_stack_now(void *ctx)
{
	struct call_stack *all = call_stack(false);
	u64 id;

	if (!all || all->walking)
		return counted(LEDGER_STACK_FAILED);
	all->walking = 1;
	id = stack_of_user(ctx, 0);
	all->walking = 0;
	return id;
}

inline_ void call_ends(const struct call_place *at, struct traced_call *c, u64 ns)
{
	struct funcslower_event *e;
	u64 user_stack;

	if (ns < min_ns) {
		count(LEDGER_FILTERED);
		return;
	}
	user_stack = stack_user ? user_stack_now(at->ctx) : 0;
	e = emit_begin_stack(sizeof(*e));
	if (!e)
		return;
	e->head.time_ns = c->start;
	e->user_stack = user_stack;
	e->latency_ns = ns;
	e->result = at->result;
	e->target = c->id;
	if (at->sp == SYSTEM_CALL)
		e->call = 1 + call_index(call_number(at->regs), call_is_compat(at->regs));
	if (arguments)
		__builtin_memcpy(e->arguments, ((struct entered *)c)->arguments,
				 sizeof(e->arguments));
	identify_current(&e->who);
	emit_end_stack(at->ctx, e, sizeof(*e));
}
