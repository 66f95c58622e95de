/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* NUMA nodes of CPUs other than the running one. */
#ifndef CORETAP_NODE_BPF_H
#define CORETAP_NODE_BPF_H

#include "lib/core/coretap.bpf.h"

/* By CPU: its node plus 1, set by the loader; 0: not known. */
CPU_SLOTS(cpu_nodes, u64);

inline_ s32 node_of_cpu(u32 cpu)
{
	u64 *node = bpf_map_lookup_elem(&cpu_nodes, &cpu);

	return node ? (s32)*node - 1 : -1;
}

#endif
