/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs at the start of page faults, where x86 has tracepoints.
 *
 * Contexts: the running task, outside of interrupts, in the fault.
 */
#ifndef CORETAP_FAULT_STARTS_BPF_H
#define CORETAP_FAULT_STARTS_BPF_H

#include "lib/mm/fault.bpf.h"

#define ERROR_CODE_WRITE (1 << 1)

TRACING(on_user_fault, "tp_btf/page_fault_user")
{
	begin_fault(ctx[2] & ERROR_CODE_WRITE, false);
	return 0;
}

/* Not faults that fail at once, such as those of BPF programs that read user memory. */
TRACING(on_kernel_fault, "tp_btf/page_fault_kernel")
{
	if (!BPF_CORE_READ(current_task(), pagefault_disabled))
		begin_fault(ctx[2] & ERROR_CODE_WRITE, false);
	return 0;
}

#endif
