/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that record the owner of each TCP socket, for tools whose
 * events come in any interrupted task. The tool defines owner_slot().
 *
 * Contexts: tasks and softirqs, at inet_sock_set_state and tcp_destroy_sock.
 */
#ifndef CORETAP_SOCK_OWNERS_BPF_H
#define CORETAP_SOCK_OWNERS_BPF_H

#include "lib/net/acceptors.bpf.h"
#include "lib/core/program.bpf.h"

/* In the SOCK_SLOT of the socket, which is made; NULL: there is no room. */
inline_ struct sock_owner *owner_slot(struct sock *sk);

/* Defined by the tool's SOCK_SLOT. */
inline_ int sock_slot_forget(struct sock *sk);

TRACING(on_state, "tp_btf/inet_sock_set_state")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	u32 newstate = (u32)ctx[2];
	struct sock_owner *o;

	if (tp && newstate == TCP_CLOSE)
		forget_acceptor(tp);
	if (!tp || newstate == TCP_CLOSE || !users_transition(tp, newstate))
		return 0;
	o = owner_slot(sk);
	if (o)
		learn_owner(tp, newstate, o);
	return 0;
}

PROGRAM(on_destroy, "tp_btf/tcp_destroy_sock", sock_slot_forget((struct sock *)ctx[0]))

#endif
