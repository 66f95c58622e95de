/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Accepted TCP connections, in the task that accepts them.
 *
 * Contexts: the running task, outside of interrupts, preemptible.
 */
#ifndef CORETAP_ACCEPTED_BPF_H
#define CORETAP_ACCEPTED_BPF_H

#include "lib/net/fd_tcp.bpf.h"
#include "lib/core/text.bpf.h"
#include "lib/core/program.bpf.h"

/* NULL: no connection, or one that a packet has already closed. */
inline_ struct sock *open_tcp(struct sock *sk)
{
	sk = tcp_behind(sk);
	return sk && FOLLOW(sock, sk, __sk_common.skc_state) != TCP_CLOSE ? sk : NULL;
}

/* accept(2) has locked the socket; MPTCP subflows get their files elsewhere. */
inline_ struct sock *locked_sock(struct sock *sk)
{
	return sk->sk_lock.owned ? sk : NULL;
}

/*
 * A connection was accepted; sk is an address for FOLLOW(). Defined by the program that
 * includes this, which has the hook accepted_connections(). The kernel enters the function
 * that gives a socket its file after the wait, so it covers calls that wait when
 * tracing starts, and io_uring. Without fentry, system call exits are used.
 */
inline_ void accepted(struct sock *sk, const struct sock_owner *owner);

inline_ int accept_of(struct sock *sk)
{
	struct sock_owner owner = {};

	sk = open_tcp(sk);
	if (!sk)
		return 0;
	take_owner(&owner);
	accepted(sk, &owner);
	return 0;
}

PROGRAM(on_accept, "fentry/security_sock_graft", accept_of(locked_sock((struct sock *)ctx[0])))

UNPREEMPTED(on_accept_exit, "tracepoint/syscalls/sys_exit_accept,sys_exit_accept4", struct exit_ctx)
{
	return ctx->ret < 0 ? 0 : accept_of(current_sock(ctx->ret));
}

#endif
