/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Page faults: the kind of memory at the address. */
#ifndef CORETAP_FAULT_H
#define CORETAP_FAULT_H

#include "lib/core/shared.h"

enum area_kind {
	AREA_UNKNOWN, /* the mapping could not be looked up */
	AREA_FILE,
	AREA_ANONYMOUS,
	AREA_HEAP,
	AREA_STACK,   /* of the process; those of threads are anonymous */
	AREA_SPECIAL, /* set up by the kernel, such as the vDSO */
};

/* Memory of one name; all zeros: not requested. */
struct area_id {
	struct file_id file; /* zeros, except for AREA_FILE */
	__u32 kind;
	__u32 pad;
};

#endif
