/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A path passed to a system call (include/coretap/given_path.hpp). */
#ifndef CORETAP_GIVEN_PATH_H
#define CORETAP_GIVEN_PATH_H

#include "lib/core/shared.h"

enum given_path_what {
	GIVEN_PATH_TEXT = 1, /* the path was read */
	GIVEN_PATH_CUT = 2,  /* ... and is truncated */
	GIVEN_PATH_BASE = 4, /* the base directory is present */
	GIVEN_PATH_BASE_CUT = 8,
};

struct given_path {
	struct text text;
	struct text base; /* components, last first (bpf/lib/paths/path.bpf.h) */
	__u32 what;       /* bits of enum given_path_what */
	__u32 pad;
};

#endif
