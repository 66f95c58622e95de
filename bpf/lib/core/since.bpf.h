/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events that started before all programs were attached, or ended after some were detached.
 *
 * Contexts: all, NMIs included.
 */
#ifndef CORETAP_SINCE_BPF_H
#define CORETAP_SINCE_BPF_H

#include "lib/core/stopped.bpf.h"

/* CLOCK_MONOTONIC, set by the loader when all programs are attached; 0 until then. */
volatile __u64 tracing_since = 0;

/* True if it began after tracing started. */
inline_ bool began_traced(u64 time_ns)
{
	return tracing_since && time_ns > tracing_since;
}

/*
 * Was the end of the span from start_ns (0: none) missed, now that the next one starts?
 * While a tracepoint is switched on or off some CPUs run its program and others do not.
 */
inline_ bool end_missed(u64 start_ns)
{
	return start_ns && began_traced(start_ns) && !tracing_stopped;
}

#endif
