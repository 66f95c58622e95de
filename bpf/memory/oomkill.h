/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_OOMKILL_H
#define CORETAP_OOMKILL_H

#include "memory/memcg.h"

enum oomkill_kind { OOMKILL_MACHINE, OOMKILL_MEMCG, OOMKILL_KINDS };

struct oomkill_event {
	struct event_head head;
	struct task_id victim;
	struct task_id trigger;  /* the task whose allocation failed */
	__u64 anon, file, shmem; /* resident pages of the killed process */
	__u32 kind;
	__u32 killed; /* 0: it was exiting already */
	__s32 order;  /* -1: not known */
	__u32 gfp;
	__s32 oom_score_adj;
	__u32 pad;
	struct memcg memcg; /* of the killed process */
};

#endif
