/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* System calls that remove or change a name of a file. */
#ifndef CORETAP_REMOVAL_H
#define CORETAP_REMOVAL_H

enum removal_call {
	REMOVAL_UNLINK,
	REMOVAL_UNLINKAT,
	REMOVAL_RMDIR,
	REMOVAL_RENAME, /* this and later ones have two paths */
	REMOVAL_RENAMEAT,
	REMOVAL_RENAMEAT2,
	REMOVAL_OTHER, /* none of these: io_uring, the kernel itself, a 32-bit call */
	REMOVAL_CALLS
};

#endif
