/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_JAVAGC_H
#define CORETAP_JAVAGC_H

#include "lib/core/shared.h"

enum javagc_kind { JAVAGC_PAUSE, JAVAGC_POOLS, JAVAGC_KINDS };

/* Two roles for each kind. */
enum javagc_role {
	JAVAGC_NONE,
	JAVAGC_BEGIN,
	JAVAGC_END,
	JAVAGC_POOL_BEGIN,
	JAVAGC_POOL_END,
};

struct javagc_event {
	struct event_head head;
	__u64 pause_ns;
	struct task_id who;
	__u32 cpu;
	__u32 kind;
};

#endif
