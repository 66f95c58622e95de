/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --ppid: only processes with this parent.
 *
 * Contexts: all. Counts FILTERED.
 */
#ifndef CORETAP_PARENT_BPF_H
#define CORETAP_PARENT_BPF_H

#include "lib/core/filter.bpf.h"

OPT(__u32, wanted_parent);

inline_ bool keep_parent(struct task_struct *t)
{
	if (!wanted_parent || process_of(BPF_CORE_READ(t, real_parent)) == wanted_parent)
		return true;
	return filtered();
}

/* Without the option the task is not asked for. */
inline_ bool keep_current_parent(void)
{
	return !wanted_parent || keep_parent(current_task());
}

#endif
