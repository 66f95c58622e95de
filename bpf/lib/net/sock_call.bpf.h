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

/* Reads a struct sockaddr of user memory; false: neither IPv4 nor IPv6. */
inline_ bool read_sockaddr(u64 from, u8 address[16], u16 *port, u32 *ip)
{
	struct {
		u16 family;
		u16 port;
		u32 four; /* IPv6: flow information */
		u32 six[4];
	} name = {};

	/* An IPv4 address may be at the end of mapped memory. */
	if (bpf_probe_read_user(&name, 8, (void *)from))
		return false;
	if (name.family != SOCK_AF_INET && name.family != SOCK_AF_INET6)
		return false;
	*port = port_of(name.port);
	*ip = 4;
	__builtin_memset(address, 0, 16);
	if (name.family == SOCK_AF_INET) {
		*(u32 *)address = name.four;
		return true;
	}
	if (bpf_probe_read_user(name.six, sizeof(name.six), (void *)(from + 8)))
		return false;
	if (mapped((struct in6_addr *)name.six)) {
		*(u32 *)address = name.six[3];
		return true;
	}
	*ip = 6;
	__builtin_memcpy(address, name.six, sizeof(name.six));
	return true;
}

#endif
