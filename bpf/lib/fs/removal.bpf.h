/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs at the entry of system calls that remove or change
 * a name of a file. The tool defines removal_begins().
 *
 * Contexts: the running task, outside of interrupts.
 */
#ifndef CORETAP_REMOVAL_BPF_H
#define CORETAP_REMOVAL_BPF_H

#include "lib/syscall/call_slot.bpf.h"
#include "lib/paths/given_path.bpf.h"
#include "lib/fs/removal.h"

struct removal {
	u64 start; /* 0: none in progress */
	u64 name, to;
	s32 dfd, to_dfd;
	u32 call;
	u32 flags;
};

inline_ int removal_begins(struct removal *r);

/* For ON_ENTRY(). */
inline_ int removal_entered(u32 call, s32 dfd, u64 name, s32 to_dfd, u64 to, u32 flags)
{
	struct removal r = {
		.call = call, .dfd = dfd, .name = name, .to_dfd = to_dfd, .to = to, .flags = flags
	};

	r.start = bpf_ktime_get_ns();
	return removal_begins(&r);
}

ON_ENTRY(unlink, removal_entered(REMOVAL_UNLINK, AT_CWD, ctx->args[0], 0, 0, 0))
ON_ENTRY(unlinkat,
	 removal_entered(REMOVAL_UNLINKAT, ctx->args[0], ctx->args[1], 0, 0, ctx->args[2]))
ON_ENTRY(rename, removal_entered(REMOVAL_RENAME, AT_CWD, ctx->args[0], AT_CWD, ctx->args[1], 0))
ON_ENTRY(renameat, removal_entered(REMOVAL_RENAMEAT, ctx->args[0], ctx->args[1], ctx->args[2],
				   ctx->args[3], 0))
ON_ENTRY(renameat2, removal_entered(REMOVAL_RENAMEAT2, ctx->args[0], ctx->args[1], ctx->args[2],
				    ctx->args[3], ctx->args[4]))

#define REMOVAL_EXITS                                                            \
	"tracepoint/syscalls/sys_exit_unlink,sys_exit_unlinkat,sys_exit_rename," \
	"sys_exit_renameat,sys_exit_renameat2"

#endif
