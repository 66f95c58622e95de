/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slots of tasks' faults without members of the tool.
 *
 * Contexts: the running task, outside of interrupts.
 */
#ifndef CORETAP_FAULT_SLOTS_BPF_H
#define CORETAP_FAULT_SLOTS_BPF_H

#include "lib/mm/fault.bpf.h"

TASK_SLOT(struct fault);

inline_ struct fault *fault_slot(bool make)
{
	return current_slot(make);
}

inline_ void fault_begins(struct fault *f)
{
}

#endif
