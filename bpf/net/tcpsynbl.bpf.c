// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcpsynbl: accept queue of listening sockets when a handshake completes. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/net/sock.bpf.h"
#include "net/tcpsynbl.h"

OPT(bool, by_port);

HISTOGRAM(backlogs, struct tcpsynbl_key)

/* Listening tasks, by local end: a new connection has no pointer to its listener. */
MAP(HASH, owners, 1, struct flow, struct sock_owner);

/* The local end only; the wildcard address is the same for IPv4 and IPv6. */
inline_ void listening_end(const struct tcp_sock *tp, struct flow *f)
{
	u32 *local = (u32 *)f->local;

	flow_of(tp, f);
	f->rport = 0;
	__builtin_memset(f->remote, 0, sizeof(f->remote));
	if (f->ip == 6 && mapped((const struct in6_addr *)f->local)) {
		f->ip = 4;
		local[0] = local[3];
		local[2] = local[3] = 0;
	}
}

inline_ bool any_address(const struct flow *f)
{
	const u32 *local = (const u32 *)f->local;

	return !(local[0] | local[1] | local[2] | local[3]);
}

/*
 * Depending on the kernel, a connection has the local end of its listener,
 * or already its own: looks up this address, then the wildcard address.
 */
inline_ const struct sock_owner *listener_of(const struct flow *f)
{
	struct flow all = { .lport = f->lport, .netns = f->netns };
	static const struct sock_owner nobody;
	struct sock_owner *owner = NULL;

	if (!filter.on && !owner_parts)
		return &nobody;
	if (!any_address(f))
		owner = bpf_map_lookup_elem(&owners, f);
	if (!owner)
		owner = bpf_map_lookup_elem(&owners, &all);
	return owner ?: &nobody;
}

/* `sk` is a copy of the listener, with its queue counters; the connection will join that queue. */
inline_ void completes(const struct sock *sk, const struct flow *f)
{
	const struct sock_owner *owner = listener_of(f);
	struct tcpsynbl_key key = {};

	if (!owner_wanted(owner) || !flow_wanted(f)) {
		count(LEDGER_FILTERED);
		return;
	}
	key.backlog_max_1 = sk->sk_max_ack_backlog + 1ULL;
	if (by_port)
		key.port = f->lport;
	backlogs_add_of(&key, sk->sk_ack_backlog, &owner->id);
}

TRACING(on_state, "tp_btf/inet_sock_set_state")
{
	struct sock *sk = (struct sock *)ctx[0];
	u32 oldstate = (u32)ctx[1], newstate = (u32)ctx[2];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct sock_owner owner = {};
	struct flow f = {};

	if (!tp || (oldstate != TCP_LISTEN && newstate != TCP_LISTEN))
		return 0;
	listening_end(tp, &f);
	if (oldstate == TCP_LISTEN && newstate == TCP_SYN_RECV) {
		completes(sk, &f);
		return 0;
	}
	if (!filter.on && !owner_parts)
		return 0;
	if (any_address(&f))
		f.ip = 0;
	if (newstate == TCP_CLOSE) {
		bpf_map_delete_elem(&owners, &f);
	} else if (newstate == TCP_LISTEN && in_users_call(tp)) {
		take_owner(&owner);
		map_put(&owners, &f, &owner);
	}
	return 0;
}
