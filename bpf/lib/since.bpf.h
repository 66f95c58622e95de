/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What began before all programs were attached. */
#ifndef CORETAP_SINCE_BPF_H
#define CORETAP_SINCE_BPF_H

#include "lib/coretap.bpf.h"

/* CLOCK_MONOTONIC, set by the loader when all is attached; 0 until then. */
volatile __u64 tracing_since = 0;

/* What began then was seen from its start. */
inline_ bool began_traced(u64 time_ns)
{
	return tracing_since && time_ns > tracing_since;
}

#endif
