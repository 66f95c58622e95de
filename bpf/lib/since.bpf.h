/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What began before all programs were attached, or ended when some no longer were. */
#ifndef CORETAP_SINCE_BPF_H
#define CORETAP_SINCE_BPF_H

#include "lib/stopped.bpf.h"

/* CLOCK_MONOTONIC, set by the loader when all is attached; 0 until then. */
volatile __u64 tracing_since = 0;

/* What began then was seen from its start. */
inline_ bool began_traced(u64 time_ns)
{
	return tracing_since && time_ns > tracing_since;
}

/*
 * Was the end missed of what started then, or never (0), now that the next one starts? While a
 * tracepoint is switched on or off some CPUs run its program and others do not.
 */
inline_ bool end_missed(u64 start_ns)
{
	return start_ns && began_traced(start_ns) && !tracing_stopped;
}

#endif
