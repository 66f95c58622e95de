/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that signals interrupt, and those that return in another task than they began in. */
#ifndef CORETAP_INTERRUPTED_BPF_H
#define CORETAP_INTERRUPTED_BPF_H

#include "lib/syscall/syscall.bpf.h"

#define CALL32_RESTART 0
#define CALL32_FORK 2
#define CALL32_CLONE 120
#define CALL32_VFORK 190
#define CALL_CLONE3 435

inline_ bool call_restarts(u32 index)
{
	return index == CALL_RESTART || index == CALLS_COMPAT + CALL32_RESTART;
}

/* A new task returning from the call that its parent made. */
inline_ bool call_of_parent(u32 index, long result)
{
	if (result)
		return false;
	switch (index) {
	case CALL_CLONE:
#if CALL_FORK != CALL_CLONE
	case CALL_FORK:
	case CALL_VFORK:
#endif
	case CALL_CLONE3:
	case CALLS_COMPAT + CALL32_FORK:
	case CALLS_COMPAT + CALL32_CLONE:
	case CALLS_COMPAT + CALL32_VFORK:
	case CALLS_COMPAT + CALL_CLONE3:
		return true;
	}
	return false;
}

#define ERESTARTNOINTR 513

/* True if the call ends when the signal has this handler. */
inline_ bool call_ended_by(struct k_sigaction *action, u32 error)
{
	const u64 restart = 0x10000000; /* SA_RESTART */

	return error != ERESTARTNOINTR &&
	       (error != ERESTARTSYS || !(action->sa.sa_flags & restart));
}

inline_ bool signal_has_handler(struct k_sigaction *action)
{
	return (u64)action->sa.sa_handler > 1; /* SIG_DFL, SIG_IGN */
}

#endif
