/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP connections by file descriptor, in system calls of the running task.
 *
 * Contexts: the running task, outside of interrupts.
 */
#ifndef CORETAP_FD_TCP_BPF_H
#define CORETAP_FD_TCP_BPF_H

#include "lib/net/fd_sock.bpf.h"

/*
 * TCP's own socket for an address from current_sock(),
 * the first one if MPTCP has several; NULL: not TCP.
 */
inline_ struct sock *tcp_behind(struct sock *sk)
{
	u32 protocol = sk ? FOLLOW(sock, sk, sk_protocol) : 0;

	if (protocol == IPPROTO_TCP)
		return sk;
	if (protocol != IPPROTO_MPTCP || !bpf_core_field_exists(((struct mptcp_sock *)0)->first))
		return NULL;
	return BPF_CORE_READ((struct mptcp_sock *)sk, first);
}

/* By the result of accept(2): the two ends of the TCP connection; false: not TCP. */
inline_ bool accepted_tcp(s64 fd, struct flow *f)
{
	struct sock *sk = fd < 0 ? NULL : tcp_behind(current_sock(fd));

	return sk && flow_read(sk, f);
}

#endif
