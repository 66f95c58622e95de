/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP sockets: addresses, owners, and one record of the tool per socket.
 *
 * Contexts: tasks and softirqs; owners by the running task. Counts UNTRACKED.
 */
#ifndef CORETAP_SOCK_BPF_H
#define CORETAP_SOCK_BPF_H

#include "lib/core/filter.bpf.h"
#include "lib/net/flow.h"

#define SOCK_AF_INET 2
#define SOCK_AF_INET6 10
#define SOCK_SHUTDOWN_MASK 3 /* both directions */

OPT(__u32, filter_ip); /* 4 or 6; 0: both */
OPT(bool, filter_lports_on);
OPT(bool, filter_rports_on);
MAP(HASH, filter_lports, 1, u32, u8);
MAP(HASH, filter_rports, 1, u32, u8);
OPT(__u32, filter_netns); /* 0: all */
OPT(bool, filter_laddrs_on);
OPT(bool, filter_raddrs_on);

#define FILTER_PREFIXES(name)                         \
	struct {                                      \
		__uint(type, BPF_MAP_TYPE_LPM_TRIE);  \
		__uint(max_entries, 1);               \
		__uint(map_flags, BPF_F_NO_PREALLOC); \
		__type(key, struct address_prefix);   \
		__type(value, u8);                    \
	} name SEC(".maps")

FILTER_PREFIXES(filter_laddrs);
FILTER_PREFIXES(filter_raddrs);

inline_ u16 port_of(__be16 port)
{
	return __builtin_bswap16(port);
}

inline_ bool mapped(const struct in6_addr *a)
{
	return !a->in6_u.u6_addr32[0] && !a->in6_u.u6_addr32[1] &&
	       a->in6_u.u6_addr32[2] == __builtin_bswap32(0xffff);
}

/* Sets addresses and ports except the local port, for a socket or request socket: plain loads. */
inline_ void ends_of(const struct sock_common *c, struct flow *f)
{
	u32 *local = (u32 *)f->local, *remote = (u32 *)f->remote;

	f->rport = port_of(c->skc_dport);
	f->netns = c->skc_net.net->ns.inum;
	f->ip = 4;
	if (c->skc_family == SOCK_AF_INET6 && bpf_core_field_exists(c->skc_v6_daddr)) {
		if (!mapped(&c->skc_v6_daddr)) {
			f->ip = 6;
			for (int i = 0; i < 4; i++) {
				local[i] = c->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
				remote[i] = c->skc_v6_daddr.in6_u.u6_addr32[i];
			}
			return;
		}
		local[0] = c->skc_v6_rcv_saddr.in6_u.u6_addr32[3];
		remote[0] = c->skc_v6_daddr.in6_u.u6_addr32[3];
		return;
	}
	local[0] = c->skc_rcv_saddr;
	remote[0] = c->skc_daddr;
}

/* The bound port, which remains when the kernel unhashes the socket. */
inline_ void flow_of(const struct tcp_sock *tp, struct flow *f)
{
	ends_of(&tp->inet_conn.icsk_inet.sk.__sk_common, f);
	f->lport = port_of(tp->inet_conn.icsk_inet.inet_sport);
}

/* The key to find the longest prefix of this address; *key is zeroed. */
inline_ void prefix_key(struct address_prefix *key, const u8 address[16], u32 ip)
{
	u32 *to = (u32 *)key->address;

	key->bits = 128;
	if (ip == 4) {
		to[2] = __builtin_bswap32(0xffff);
		to[3] = *(const u32 *)address;
	} else {
		__builtin_memcpy(key->address, address, sizeof(key->address));
	}
}

inline_ bool in_prefixes(void *prefixes, const u8 address[16], u32 ip)
{
	struct address_prefix key = {};

	prefix_key(&key, address, ip);
	return bpf_map_lookup_elem(prefixes, &key);
}

inline_ bool flow_filters_on(void)
{
	return filter_ip || filter_netns || filter_laddrs_on || filter_raddrs_on ||
	       filter_lports_on || filter_rports_on;
}

/* Applies -4, -6, --netns and the lists of ports and addresses. */
inline_ bool flow_wanted(const struct flow *f)
{
	u32 lport = f->lport, rport = f->rport;

	if (filter_ip && f->ip != filter_ip)
		return false;
	if (filter_netns && f->netns != filter_netns)
		return false;
	if (filter_laddrs_on && !in_prefixes(&filter_laddrs, f->local, f->ip))
		return false;
	if (filter_raddrs_on && !in_prefixes(&filter_raddrs, f->remote, f->ip))
		return false;
	if (filter_lports_on && !bpf_map_lookup_elem(&filter_lports, &lport))
		return false;
	return !filter_rports_on || bpf_map_lookup_elem(&filter_rports, &rport);
}

/* A subflow of an MPTCP connection, which takes the file from it before it is closed. */
inline_ bool is_subflow(const struct tcp_sock *tp)
{
	return bpf_core_field_exists(tp->is_mptcp) && tp->is_mptcp;
}

/*
 * The running task has locked the socket in one of its calls. Packets are
 * processed with just the spinlock, in the interrupted task, and never
 * while the socket is owned. MPTCP also has kernel threads that lock it.
 */
inline_ bool in_users_call(const struct tcp_sock *tp)
{
	if (!tp->inet_conn.icsk_inet.sk.sk_lock.owned)
		return false;
	return !is_subflow(tp) || !(BPF_CORE_READ(current_task(), flags) & PF_KTHREAD);
}

/* A file refers to the socket: it will be closed through that. */
inline_ bool has_file(const struct tcp_sock *tp)
{
	return tp->inet_conn.icsk_inet.sk.sk_socket;
}

/*
 * The running task makes this transition as the socket's user: by connect,
 * shutdown or close; not by an incoming packet, nor by destroying sockets of
 * other tasks (ss -K), which leaves an error on a socket that was not shut down.
 */
inline_ bool users_transition(const struct tcp_sock *tp, u32 newstate)
{
	const struct sock *sk = &tp->inet_conn.icsk_inet.sk;

	if (!in_users_call(tp))
		return false;
	if (newstate == TCP_CLOSE)
		return sk->sk_shutdown == SOCK_SHUTDOWN_MASK || !sk->sk_err;
	return newstate == TCP_SYN_SENT || newstate == TCP_FIN_WAIT1 || newstate == TCP_LAST_ACK;
}

/* The process that owns a socket, recorded when it was seen using it. */
struct sock_owner {
	struct task_id id;
	u32 wanted; /* by the filters, evaluated while it ran */
	u32 pad;
};

inline_ void take_owner(struct sock_owner *o)
{
	identify_current(&o->id);
	o->wanted = !filter.on || filter_matches(current_task());
}

/* A socket without a known owner matches no filter. */
inline_ bool owner_wanted(const struct sock_owner *o)
{
	return o->id.known ? o->wanted : !filter.on;
}

inline_ bool keep_connection(const struct sock_owner *o, const struct flow *f)
{
	return (owner_wanted(o) && flow_wanted(f)) || filtered();
}

/*
 * Socket storage for tracing programs came with 5.11 (8e4597c627fb), as task storage
 * did; before, an LRU hash by address is used. Neither refuses a new socket.
 */
#define SOCK_SLOT(slot_type)                                                                  \
	SLOT_MAPS(sock_slots, BPF_MAP_TYPE_SK_STORAGE, BPF_MAP_TYPE_LRU_HASH, u64, slot_type) \
	inline_ slot_type *sock_slot(struct sock *sk, bool make)                              \
	{                                                                                     \
		slot_type *s;                                                                 \
                                                                                              \
		if (has_task_storage())                                                       \
			s = bpf_sk_storage_get(&sock_slots, sk, 0,                            \
					       make ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);    \
		else                                                                          \
			s = sock_slots_hashed((u64)sk, make);                                 \
		if (!s && make)                                                               \
			count(LEDGER_UNTRACKED);                                              \
		return s;                                                                     \
	}                                                                                     \
	/* Call when the socket is destroyed. */                                              \
	inline_ int sock_slot_forget(struct sock *sk)                                         \
	{                                                                                     \
		u64 key = (u64)sk;                                                            \
                                                                                              \
		if (!has_task_storage())                                                      \
			bpf_map_delete_elem(&sock_slots_hash, &key);                          \
		return 0;                                                                     \
	}

#endif
