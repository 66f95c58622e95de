/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BITESIZE_H
#define CORETAP_BITESIZE_H

#include "lib/core/shared.h"

struct bitesize_key {
	char comm[COMM_LEN] __attribute__((aligned(8))); /* of the submitter; empty: not known */
	__u32 disk;                                      /* 0: not requested */
	__u32 flags; /* operation; 0: not requested, or a read */
};

#endif
