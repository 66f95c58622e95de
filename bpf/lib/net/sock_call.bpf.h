/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls on IPv4 and IPv6 sockets, from entry to exit.
 *
 * Contexts: the running task, outside of interrupts.
 */
#ifndef CORETAP_SOCK_CALL_BPF_H
#define CORETAP_SOCK_CALL_BPF_H

#include "lib/net/fd_sock.bpf.h"
#include "lib/syscall/call_slot.bpf.h"

/* The current call of a task. */
struct sock_call {
	u64 start;   /* 0: none in progress */
	u64 address; /* of a struct sockaddr in user memory */
	u32 fd;
	u32 number; /* an argument of the call */
};

CALL_SLOT(struct sock_call)

inline_ int sock_call_begin(u32 fd, u64 address, u32 number)
{
	struct sock_call *c = wanted_slot();

	if (!c)
		return 0;
	c->fd = fd;
	c->address = address;
	c->number = number;
	c->start = bpf_ktime_get_ns();
	return 0;
}

#endif
