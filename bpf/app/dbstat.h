/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_DBSTAT_H
#define CORETAP_DBSTAT_H

#include "lib/targets/database.h"
#include "lib/core/shared.h"

struct dbstat_key {
	__u32 server;
	__u32 command; /* 0: not requested */
};

#endif
