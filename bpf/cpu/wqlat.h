/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_WQLAT_H
#define CORETAP_WQLAT_H

#include "lib/core/shared.h"

#define WORKQUEUE_NAME_LEN 32 /* WQ_NAME_LEN; 24 until 6.10 */

/* Members not requested are 0. */
struct wqlat_key {
	__u64 function;
	char workqueue[WORKQUEUE_NAME_LEN];
};

#endif
