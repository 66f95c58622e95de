/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a mapping that was looked up before may have changed.
 *
 * Contexts: all, NMIs included; a mapping that is being changed may be seen as before.
 */
#ifndef CORETAP_MAPPING_CHANGES_BPF_H
#define CORETAP_MAPPING_CHANGES_BPF_H

#include "lib/core/coretap.bpf.h"

/* A plain number at first, a sequence counter since 6.14. */
struct seqcount___fault {
	unsigned int sequence;
} __attribute__((preserve_access_index));

struct mm_struct___seqcount {
	struct seqcount___fault mm_lock_seq;
} __attribute__((preserve_access_index));

struct mm_struct___number {
	unsigned int mm_lock_seq;
} __attribute__((preserve_access_index));

/*
 * A count of possible mapping changes: since 6.4 the kernel keeps one for its own
 * lookups (5e31275cc997). 0: not available.
 */
inline_ u64 mapping_changes(struct mm_struct *mm)
{
	struct mm_struct___seqcount *counter = (void *)mm;
	struct mm_struct___number *number = (void *)mm;

	if (bpf_core_field_exists(counter->mm_lock_seq.sequence))
		return 1ULL << 32 | counter->mm_lock_seq.sequence;
	if (bpf_core_field_exists(number->mm_lock_seq))
		return 1ULL << 32 | number->mm_lock_seq;
	return 0;
}

#endif
