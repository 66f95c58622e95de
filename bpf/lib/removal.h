/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* System calls that remove a name of a file, or give it another one. */
#ifndef CORETAP_REMOVAL_H
#define CORETAP_REMOVAL_H

enum removal_call {
	REMOVAL_UNLINK,
	REMOVAL_UNLINKAT,
	REMOVAL_RMDIR,
	REMOVAL_RENAME, /* from here on they have two paths */
	REMOVAL_RENAMEAT,
	REMOVAL_RENAMEAT2,
	REMOVAL_OTHER, /* none of them: io_uring, the kernel itself, a 32-bit call */
	REMOVAL_CALLS
};

#endif
