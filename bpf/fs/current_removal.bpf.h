/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The system call that removes or changes a name, for programs within the call. */
#ifndef CORETAP_CURRENT_REMOVAL_BPF_H
#define CORETAP_CURRENT_REMOVAL_BPF_H

#include "lib/fs/removal.bpf.h"
#include "lib/syscall/current_call.bpf.h"

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
		r->call = index == CALL_RENAMEAT2 ? REMOVAL_RENAMEAT2 : REMOVAL_RENAMEAT;
		r->dfd = args[0];
		r->name = args[1];
		r->to_dfd = args[2];
		r->to = args[3];
		return true;
	}
	return false;
}

#endif
