/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs at completed faults of wanted tasks; the tool defines fault_served() and needs_area().
 *
 * Contexts: the running task, outside of interrupts, in the fault.
 */
#ifndef CORETAP_EACH_FAULT_BPF_H
#define CORETAP_EACH_FAULT_BPF_H

#include "lib/mm/fault.bpf.h"

/* A constant: is the mapping looked up? */
inline_ bool needs_area(void);
static __noinline int fault_served(struct bpf_perf_event_data *ctx, bool major, struct area *a);

/* `kept`: the mapping was saved at the function's entry. */
inline_ int served(struct bpf_perf_event_data *ctx, bool major, bool kept)
{
	struct area a = {};

	if (!keep_current())
		return 0;
	if (needs_area()) {
		if (kept)
			kept_area(&a);
		else
			find_area(&a, ctx->addr);
	}
	return fault_served(ctx, major, &a);
}

SEC("perf_event/minor-faults")
int on_minor(struct bpf_perf_event_data *ctx)
{
	return served(ctx, false, false);
}

SEC("perf_event/minor-faults")
int on_minor_kept(struct bpf_perf_event_data *ctx)
{
	return served(ctx, false, true);
}

SEC("perf_event/major-faults")
int on_major(struct bpf_perf_event_data *ctx)
{
	return served(ctx, true, false);
}

SEC("perf_event/major-faults")
int on_major_kept(struct bpf_perf_event_data *ctx)
{
	return served(ctx, true, true);
}

#endif
