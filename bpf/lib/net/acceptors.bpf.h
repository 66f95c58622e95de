/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The task that accepted a TCP connection and owns it afterwards: kept until the tool takes it
 * or the socket is closed. In a hash, as programs at system calls cannot use socket storage.
 *
 * Contexts: the running task, outside of interrupts; forget_acceptor() also softirqs. Counts
 * UNTRACKED.
 */
#ifndef CORETAP_ACCEPTORS_BPF_H
#define CORETAP_ACCEPTORS_BPF_H

#include "lib/net/accepted.bpf.h"

MAP(HASH, acceptors, 1, u64, struct sock_owner);

inline_ void accepted(struct sock *sk, const struct sock_owner *o)
{
	u64 key = (u64)sk;

	map_put(&acceptors, &key, o);
}

inline_ void forget_acceptor(const struct tcp_sock *tp)
{
	u64 key = (u64)tp;

	bpf_map_delete_elem(&acceptors, &key);
}

/* NULL: no entry. */
inline_ struct sock_owner *acceptor_of(const struct tcp_sock *tp)
{
	u64 key = (u64)tp;

	return has_file(tp) || is_subflow(tp) ? bpf_map_lookup_elem(&acceptors, &key) : NULL;
}

/* The owner that the tool knows (`o` may be NULL), else the acceptor. */
inline_ struct sock_owner *known_owner(const struct tcp_sock *tp, struct sock_owner *o)
{
	return o && o->id.known ? o : acceptor_of(tp);
}

/* If the owner is not known yet. */
inline_ void take_acceptor(const struct tcp_sock *tp, struct sock_owner *o)
{
	struct sock_owner *kept = o->id.known ? NULL : acceptor_of(tp);

	if (!kept)
		return;
	*o = *kept;
	forget_acceptor(tp);
}

/* The running task uses the socket and makes this transition, which is not to TCP_CLOSE. */
inline_ void learn_owner(const struct tcp_sock *tp, u32 newstate, struct sock_owner *o)
{
	take_acceptor(tp, o);
	if (!o->id.known || newstate == TCP_SYN_SENT)
		take_owner(o);
}

#endif
