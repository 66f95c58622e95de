/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_DIRTOP_H
#define CORETAP_DIRTOP_H

#include "lib/fs/file_counts.h"

struct dirtop_key {
	struct file_id directory;
};

#endif
