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
#include "lib/targets/timed_call.bpf.h"

inline_ int place_entered(const struct call_place *at, const bool system_call)
{
	return timed_call_entered(at);
}

inline_ int place_returned(const struct call_place *at, const bool system_call)
{
	return timed_call_returned(at);
}

#endif
