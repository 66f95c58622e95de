/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_DCSNOOP_H
#define CORETAP_DCSNOOP_H

#include "lib/core/shared.h"

struct dcsnoop_event {
	struct event_head head;
	struct task_id who;
	struct text name;
	struct text directory; /* components, last first */
	__u32 missed;
	__u32 path_kind; /* of the directory */
};

#endif
