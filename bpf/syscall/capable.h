/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_CAPABLE_H
#define CORETAP_CAPABLE_H

#include "lib/core/shared.h"

enum capable_unique { CAPABLE_EACH, CAPABLE_BY_PROCESS, CAPABLE_BY_CGROUP };

/* Options of the kernel's cap_capable(). */
#define CAPABLE_NOAUDIT (1 << 1)
#define CAPABLE_INSETID (1 << 2)
#define CAPABLE_KNOWN (1 << 31) /* the options are known; not a kernel option */

struct capable_event {
	struct event_head head;
	struct task_id who;
	__u64 user_stack; /* key in `stacks` */
	__u32 capability;
	__s32 ret;
	__u32 options;
	__u32 userns;  /* namespace of the check: inode of /proc/PID/ns/user */
	__u32 syscall; /* its index plus 1; 0: none */
	__u32 pad;
};

#endif
