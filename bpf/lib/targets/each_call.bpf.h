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

inline_ void call_begins(const struct call_place *at, struct traced_call *c);
inline_ void call_ends(const struct call_place *at, struct traced_call *c, u64 ns);

inline_ int place_entered(const struct call_place *at, const bool system_call)
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

inline_ int place_returned(const struct call_place *at, const bool system_call)
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

#endif
