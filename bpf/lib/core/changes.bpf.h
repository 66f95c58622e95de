/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The number of changes of a record with one writer at a time: odd while it changes. A reader that
 * sees the same even number before and after has read a whole record.
 *
 * Contexts: any; the writer's own.
 */
#ifndef CORETAP_CHANGES_BPF_H
#define CORETAP_CHANGES_BPF_H

#include "lib/core/coretap.bpf.h"

inline_ void change_begins(u64 *changes)
{
	++*changes;
	barrier();
}

inline_ void change_ends(u64 *changes)
{
	barrier();
	++*changes;
}

inline_ u64 changes_now(u64 *changes)
{
	return *(volatile u64 *)changes;
}

#endif
