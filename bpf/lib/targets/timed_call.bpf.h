/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Entry and return of one timed call; the tool has TRACED_CALLS and defines call_begins()
 * and call_ends().
 *
 * Contexts: wherever the targets are; an interrupt may nest. Counts UNMATCHED, UNTRACKED.
 */
#ifndef CORETAP_TIMED_CALL_BPF_H
#define CORETAP_TIMED_CALL_BPF_H

#include "lib/targets/traced_calls.bpf.h"

inline_ void call_begins(const struct call_place *at, struct traced_call *c);
inline_ void call_ends(const struct call_place *at, struct traced_call *c, u64 ns);

inline_ int timed_call_entered(const struct call_place *at)
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

inline_ int timed_call_returned(const struct call_place *at)
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
