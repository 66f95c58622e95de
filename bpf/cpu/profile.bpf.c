// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* profile: the code running at each clock tick. */
#include "lib/core/filter.bpf.h"
#include "lib/stack/cpu_walk.bpf.h"
#include "lib/stack/stack_counts.bpf.h"
#include "lib/stack/stack.bpf.h"

STACK_COUNTS(1)

OPT(bool, include_idle);
OPT(bool, by_period); /* also adds up how many events the samples stand for */

inline_ int sample(struct bpf_perf_event_data *ctx, const u32 event)
{
	struct stack_row entry = {};
	struct stack_party *p = &entry.party[0];

	if (!(u32)bpf_get_current_pid_tgid() && !include_idle)
		return 0;
	if (!keep_current())
		return 0;
	p->tgid = p->tid = current_tgid(); /* the process, as in similar tools */
	party_name_current(p);
	if (stack_kernel)
		p->kernel = interrupted_stack_of_kernel(ctx);
	if (stack_user)
		p->user = stack_of_user(ctx, 0);
	p->event = event;
	return stack_add(&entry, NULL, by_period ? ctx->sample_period : 0);
}

/* A program for each of several events: before 5.15 (82e6b1eee6a8) they have no cookies. */
#define SAMPLER(name, event)                      \
	SEC("perf_event/cpu-clock")               \
	int name(struct bpf_perf_event_data *ctx) \
	{                                         \
		return sample(ctx, event);        \
	}

SAMPLER(on_sample, 0)
SAMPLER(on_second, 1)
SAMPLER(on_third, 2)
SAMPLER(on_fourth, 3)
