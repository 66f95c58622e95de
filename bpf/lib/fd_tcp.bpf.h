/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP connections by the descriptors that system calls of the running task have. */
#ifndef CORETAP_FD_TCP_BPF_H
#define CORETAP_FD_TCP_BPF_H

#include "lib/fd_sock.bpf.h"

#define SOCK_IPPROTO_TCP 6

/* Of an address that current_sock() gave. */
inline_ bool is_tcp(struct sock *sk)
{
	return FOLLOW(sock, sk, sk_protocol) == SOCK_IPPROTO_TCP;
}

/* By what accept(2) returned: the two ends of the TCP connection; false: it is none. */
inline_ bool accepted_tcp(s64 fd, struct flow *f)
{
	struct sock *sk = fd < 0 ? NULL : current_sock(fd);

	return sk && is_tcp(sk) && flow_read(sk, f);
}

#endif
