// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* profile: the code running at each clock tick. */
#include "lib/core/filter.bpf.h"
#include "lib/stack/cpu_walk.bpf.h"
#include "lib/stack/stack_counts.bpf.h"
#include "lib/stack/stack.bpf.h"

STACK_COUNTS(1)

OPT(bool, include_idle);

SEC("perf_event/cpu-clock")
int on_sample(struct bpf_perf_event_data *ctx)
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
		p->kernel = stack_of_kernel(ctx, 0);
	if (stack_user)
		p->user = stack_of_user(ctx, 0);
	return stack_add(&entry, NULL, 0);
}
