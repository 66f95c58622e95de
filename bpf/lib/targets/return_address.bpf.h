/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a user function returns to: it distinguishes a call from the same frame, after one that
 * was left by longjmp() or an exception, from a jump at the end of that one.
 *
 * Contexts: the running task, outside of interrupts, preemptible.
 */
#ifndef CORETAP_RETURN_ADDRESS_BPF_H
#define CORETAP_RETURN_ADDRESS_BPF_H

#include "lib/targets/call.bpf.h"

/* The types are private to the kernel's uprobes. */
struct xol_area___private {
	unsigned long vaddr;
} __attribute__((preserve_access_index));

struct uprobes_state___private {
	struct xol_area___private *xol_area;
} __attribute__((preserve_access_index));

struct mm_struct___uprobes {
	struct uprobes_state___private uprobes_state;
} __attribute__((preserve_access_index));

/* Call at the function's entry; 0: not known. */
inline_ u64 return_address(struct pt_regs *ctx)
{
	u64 address = 0;

#if RETURN_ADDRESS_BYTES
	bpf_probe_read_user(&address, sizeof(address), (void *)SP_OF(ctx));
#else
	address = LINK_OF(ctx);
#endif
	return address;
}

/* The kernel's return probes put this address in place of the return address; 0: not known. */
inline_ u64 return_trampoline(void)
{
	struct mm_struct *mm = BPF_CORE_READ(current_task(), mm);

	if (!bpf_core_field_exists(struct xol_area___private, vaddr))
		return 0;
	return BPF_CORE_READ((struct mm_struct___uprobes *)mm, uprobes_state.xol_area, vaddr);
}

/* With this return address now, can a call that had the other one at its entry go on? */
inline_ bool same_return(u64 now, u64 then)
{
	u64 trampoline;

	if (now == then || !now || !then)
		return true;
	trampoline = return_trampoline();
	return !trampoline || now == trampoline || then == trampoline;
}

#endif
