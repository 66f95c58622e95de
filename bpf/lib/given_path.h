/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A path that a program gave to a system call (include/coretap/given_path.hpp). */
#ifndef CORETAP_GIVEN_PATH_H
#define CORETAP_GIVEN_PATH_H

#include "lib/shared.h"

enum given_path_what {
	GIVEN_PATH_TEXT = 1, /* it could be read */
	GIVEN_PATH_CUT = 2,  /* ... and its end is missing */
	GIVEN_PATH_BASE = 4, /* the directory that it is relative to is there */
	GIVEN_PATH_BASE_CUT = 8,
};

struct given_path {
	struct text text;
	struct text base; /* components, the last first (bpf/lib/path.bpf.h) */
	__u32 what;       /* bits of enum given_path_what */
	__u32 pad;
};

#endif
