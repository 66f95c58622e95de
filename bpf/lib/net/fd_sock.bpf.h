/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets by file descriptor, at the entry or exit of a system call of the running task.
 *
 * Contexts: the running task, outside of interrupts.
 */
#ifndef CORETAP_FD_SOCK_BPF_H
#define CORETAP_FD_SOCK_BPF_H

#include "lib/paths/open_file.bpf.h"
#include "lib/net/sock.bpf.h"

FOLLOWED(inet_sock);
FOLLOWED(sock);
FOLLOWED(sock_common);
FOLLOWED(socket);

/* NULL: the descriptor is not a socket. An address for FOLLOW(). */
inline_ struct sock *current_sock(u32 fd)
{
	struct file *file = current_file(fd);
	struct socket *socket;

	if (!file || (FOLLOW(file, file, f_inode, i_mode) & MODE_FORMAT) != MODE_SOCKET)
		return NULL;
	socket = FOLLOW(file, file, private_data);
	return FOLLOW(socket, socket, sk);
}

/* Like flow_of(), for any IPv4 or IPv6 socket; false: another family. */
inline_ bool flow_read(struct sock *sk, struct flow *f)
{
	struct sock_common *c = &sk->__sk_common;
	u16 family = FOLLOW(sock_common, c, skc_family);
	struct in6_addr local, remote;

	if (family != SOCK_AF_INET && family != SOCK_AF_INET6)
		return false;
	f->lport = port_of(FOLLOW(inet_sock, sk, inet_sport));
	f->rport = port_of(FOLLOW(sock_common, c, skc_dport));
	f->netns = FOLLOW(sock_common, c, skc_net.net, ns.inum);
	f->ip = 4;
	if (family == SOCK_AF_INET6 && bpf_core_field_exists(c->skc_v6_daddr)) {
		BPF_CORE_READ_INTO(&local, c, skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&remote, c, skc_v6_daddr);
		if (!mapped(&remote) && !mapped(&local)) {
			f->ip = 6;
			__builtin_memcpy(f->local, &local, sizeof(local));
			__builtin_memcpy(f->remote, &remote, sizeof(remote));
			return true;
		}
		*(u32 *)f->local = local.in6_u.u6_addr32[3];
		*(u32 *)f->remote = remote.in6_u.u6_addr32[3];
		return true;
	}
	*(u32 *)f->local = FOLLOW(sock_common, c, skc_rcv_saddr);
	*(u32 *)f->remote = FOLLOW(sock_common, c, skc_daddr);
	return true;
}

#define SOCKADDR_READ 24 /* bytes of a struct sockaddr_in6 up to its scope */

/* Reads a struct sockaddr of this length in user memory; false: neither IPv4 nor IPv6. */
inline_ bool read_sockaddr(u64 from, u64 bytes, u8 address[16], u16 *port, u32 *ip)
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
	if (bpf_probe_read_user(name.six, bytes < SOCKADDR_READ ? 8 : sizeof(name.six),
				(void *)(from + 8)))
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
