/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_OOMKILL_H
#define CORETAP_OOMKILL_H

#include "lib/shared.h"

enum oomkill_kind { OOMKILL_MACHINE, OOMKILL_MEMCG, OOMKILL_KINDS };

#define OOMKILL_PATH 512

struct oomkill_event {
	struct event_head head;
	struct task_id victim;
	struct task_id trigger; /* whose allocation had no memory left */
	/* Of the victim, in pages. */
	__u64 total, anon, file, shmem, swapped;
	__u64 page_tables; /* bytes */
	__u64 limit;       /* of the fullest memory cgroup above it, pages */
	__u64 memcg;       /* id */
	__u32 kind;
	__u32 killed; /* 0: it was ending already */
	__s32 order;  /* -1: not known */
	__u32 gfp;
	__s32 oom_score_adj;
	__u32 path_bytes;
	__u32 path_cut;
	__u32 pad;
	char path[OOMKILL_PATH]; /* of the memory cgroup, as bpf/lib/path.bpf.h has paths */
};

#endif
