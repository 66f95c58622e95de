/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths passed to system calls, read at the call's entry.
 *
 * Contexts: the running task, outside of interrupts.
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

#endif
