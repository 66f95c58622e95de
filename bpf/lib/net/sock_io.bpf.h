/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends on TCP sockets that moved data, in the calling task; the tool defines tcp_moved().
 *
 * Contexts: the running task, outside of interrupts, preemptible at functions.
 */
#ifndef CORETAP_SOCK_IO_BPF_H
#define CORETAP_SOCK_IO_BPF_H

#include "lib/net/sock.bpf.h"
#include "lib/core/program.bpf.h"

#define RECEIVE_PEEK 2        /* the data stays in the socket */
#define RECEIVE_ERRORS 0x2000 /* receives from the error queue */

/*
 * The tracepoints came with 6.3 (6e6eda44b939); before, the functions below them are
 * used, one for IPv4 and one for IPv6. sendfile(2) had a function for pages until
 * 6.5 (2dc334f1a63a); splice(2) from a socket uses a separate function.
 */
inline_ int tcp_moved(const struct tcp_sock *tp, u64 bytes, bool sent);

inline_ int sock_io(struct sock *sk, u64 result, u64 flags, bool sent)
{
	s32 bytes = (s32)result;
	struct tcp_sock *tp;

	if (bytes <= 0 || flags & (RECEIVE_PEEK | RECEIVE_ERRORS))
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	return tp ? tcp_moved(tp, bytes, sent) : 0;
}

/* At a function whose first argument is the socket. */
inline_ int socket_io(u64 *ctx, u64 result, u64 flags, bool sent)
{
	return sock_io(((struct socket *)ctx[0])->sk, result, flags, sent);
}

PROGRAM(on_send, "tp_btf/sock_send_length", sock_io((struct sock *)ctx[0], ctx[1], 0, true))

PROGRAM(on_send_ipv4, "fexit/inet_sendmsg", socket_io(ctx, ctx[3], 0, true))
PROGRAM(on_send_ipv6, "fexit/inet6_sendmsg", socket_io(ctx, ctx[3], 0, true))
PROGRAM(on_send_page, "fexit/inet_sendpage", socket_io(ctx, ctx[5], 0, true))

#endif
