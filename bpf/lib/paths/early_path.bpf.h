/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Texts passed to system calls, mostly paths, read at the call's entry or exit.
 *
 * Contexts: the running task, outside of interrupts. Counts TRUNCATED.
 */
#ifndef CORETAP_EARLY_PATH_BPF_H
#define CORETAP_EARLY_PATH_BPF_H

#include "lib/core/text.bpf.h"

#define EFAULT 14
#define GIVEN_MOST 4095 /* PATH_MAX without the terminator */
#define GIVEN_EARLY 126

/*
 * At the call's entry, into a buffer of GIVEN_EARLY + 2 bytes. False: no path, it is longer,
 * or its page is not present yet; the call itself faults it in, so it can be read at the exit.
 */
inline_ bool given_early(char *path, u64 name, struct text *ref)
{
	bool cut;
	s64 n;

	ref->bytes = 0;
	if (!name)
		return false;
	n = text_user(path, GIVEN_EARLY, (void *)name, &cut);
	if (n < 0 || cut)
		return false;
	ref->bytes = n;
	return true;
}

/*
 * At the call's exit, into a buffer of GIVEN_MOST + 2 bytes: the length of the text; < 0: it cannot
 * be read. If the kernel could not read it either (EFAULT), the error is the program's.
 */
inline_ s64 given_late(char *path, u64 name, s64 result, bool *cut)
{
	s64 n = text_user(path, GIVEN_MOST, (void *)name, cut);

	if (*cut || (n < 0 && result != -EFAULT))
		count(LEDGER_TRUNCATED);
	return n;
}

#endif
