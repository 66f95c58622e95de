/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Page faults: what lies at the address. */
#ifndef CORETAP_FAULT_H
#define CORETAP_FAULT_H

#include "lib/shared.h"

enum area_kind {
	AREA_UNKNOWN, /* the mapping could not be looked up */
	AREA_FILE,
	AREA_ANONYMOUS,
	AREA_HEAP,
	AREA_STACK,   /* of the process; those of threads are anonymous */
	AREA_SPECIAL, /* the kernel's own, such as the vDSO */
};

/* Memory of one name; all zeros: not asked for. */
struct area_id {
	struct file_id file; /* zeros, but for AREA_FILE */
	__u32 kind;
	__u32 pad;
};

#endif
