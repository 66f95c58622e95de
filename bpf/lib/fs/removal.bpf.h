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
#include "lib/syscall/current_call.bpf.h"
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

/* The removal by the running task, from its registers, anywhere within the call; false: none. */
inline_ bool current_removal(struct removal *r)
{
	struct pt_regs *at = current_call_regs(), regs;
	u32 index = current_call_of(at);
	u64 args[6];

	if (index >= CALLS_COMPAT || bpf_core_read(&regs, sizeof(regs), at))
		return false;
	call_arguments(&regs, false, args);
	r->dfd = r->to_dfd = AT_CWD;
	r->name = args[0];
	r->to = args[1];
	switch (index) {
#ifdef CALL_UNLINK
	case CALL_UNLINK:
		r->call = REMOVAL_UNLINK;
		return true;
	case CALL_RENAME:
		r->call = REMOVAL_RENAME;
		return true;
#endif
	case CALL_UNLINKAT:
		r->call = REMOVAL_UNLINKAT;
		r->dfd = args[0];
		r->name = args[1];
		return true;
	case CALL_RENAMEAT:
	case CALL_RENAMEAT2:
		r->call = index == CALL_RENAMEAT ? REMOVAL_RENAMEAT : REMOVAL_RENAMEAT2;
		r->dfd = args[0];
		r->name = args[1];
		r->to_dfd = args[2];
		r->to = args[3];
		return true;
	}
	return false;
}

#define REMOVAL_EXITS                                                            \
	"tracepoint/syscalls/sys_exit_unlink,sys_exit_unlinkat,sys_exit_rename," \
	"sys_exit_renameat,sys_exit_renameat2"

#endif
