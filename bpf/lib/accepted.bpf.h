/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP connections that are accepted, in the task that does it. */
#ifndef CORETAP_ACCEPTED_BPF_H
#define CORETAP_ACCEPTED_BPF_H

#include "lib/fd_tcp.bpf.h"
#include "lib/text.bpf.h"

/* NULL: none, or one that a packet has ended before. */
inline_ struct sock *open_tcp(struct sock *sk)
{
	sk = tcp_behind(sk);
	return sk && FOLLOW(sock, sk, __sk_common.skc_state) != TCP_CLOSE ? sk : NULL;
}

/* accept(2) has locked the socket; subflows of MPTCP get their files elsewhere, too. */
inline_ struct sock *locked_sock(struct sock *sk)
{
	return sk->sk_lock.owned ? sk : NULL;
}

/*
 * ON_ACCEPT(accepted): accepted(sk, owner), of the address of a socket, to be followed; the tool
 * has the hook accepted_connections(). The function that gives a socket its file is entered after
 * the wait: it is passed by calls that wait when tracing starts, and by io_uring. Where there is no
 * fentry the ends of system calls are left.
 */
#define ON_ACCEPT(accepted)                                                  \
	inline_ int accept_of(struct sock *sk)                               \
	{                                                                    \
		struct sock_owner owner = {};                                \
                                                                             \
		sk = open_tcp(sk);                                           \
		if (!sk)                                                     \
			return 0;                                            \
		take_owner(&owner);                                          \
		accepted(sk, &owner);                                        \
		return 0;                                                    \
	}                                                                    \
	SEC("fentry/security_sock_graft")                                    \
	int on_accept(u64 *ctx)                                              \
	{                                                                    \
		return accept_of(locked_sock((struct sock *)ctx[0]));        \
	}                                                                    \
	SEC("tracepoint/syscalls/sys_exit_accept,sys_exit_accept4")          \
	int on_accept_exit(struct exit_ctx *ctx)                             \
	{                                                                    \
		return ctx->ret < 0 ? 0 : accept_of(current_sock(ctx->ret)); \
	}

#endif
