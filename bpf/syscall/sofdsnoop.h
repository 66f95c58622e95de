/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SOFDSNOOP_H
#define CORETAP_SOFDSNOOP_H

#include "lib/core/shared.h"

struct sofdsnoop_event {
	struct event_head head;
	struct task_id who;
	__u64 socket_inode;
	__u64 inode; /* of the passed file */
	__s32 socket_fd;
	__s32 fd;
	__u32 sends;
	__u32 peer; /* process at the socket's other end, as for SO_PEERCRED; 0: not known */
	__u32 mode; /* of the file; 0: it is already closed */
	__u32 path_kind;
	struct text path;
	__u32 pad;
};

#endif
