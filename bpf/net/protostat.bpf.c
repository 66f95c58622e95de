// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* protostat: events of TCP and UDP, by the process that owns the socket. */
#include "lib/net/fd_sock.bpf.h"
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/net/retransmit.bpf.h"
#include "net/skb_netns.bpf.h"
#include "net/protostat.h"

OPT(__u32, own_tgid); /* the loader, which may be the last that holds a file it looks at */

TABLE(counters, struct protostat_key, struct protostat_value)

/* Counters that the kernel keeps in a socket, and where they are reported. */
enum kept {
	KEPT_SEGS_IN,
	KEPT_SEGS_OUT,
	KEPT_DATA_SEGS_IN,
	KEPT_DATA_SEGS_OUT,
	KEPT_OUT_OF_ORDER,
	KEPT_DSACKS,
	KEPT_REORDERINGS,
	KEPT_TCP, /* the number of those of TCP */
	KEPT_DROPS = KEPT_TCP,
	KEPT_ALL
};

static const u8 reported_as[KEPT_TCP] = {
	[KEPT_SEGS_IN] = PROTOSTAT_SEGS_IN,
	[KEPT_SEGS_OUT] = PROTOSTAT_SEGS_OUT,
	[KEPT_DATA_SEGS_IN] = PROTOSTAT_DATA_SEGS_IN,
	[KEPT_DATA_SEGS_OUT] = PROTOSTAT_DATA_SEGS_OUT,
	[KEPT_OUT_OF_ORDER] = PROTOSTAT_OUT_OF_ORDER,
	[KEPT_DSACKS] = PROTOSTAT_DSACKS,
	[KEPT_REORDERINGS] = PROTOSTAT_REORDERINGS,
};

struct kept_counters {
	u32 count[KEPT_ALL];
};

/*
 * The events of a socket, and those of them that are in a row already. One program at a time writes
 * each part: `past` and `base` are written with the socket locked (single events are added
 * atomically), `reported` and `visited` by the iterator or, when no file refers to the socket, by
 * the programs at its last events. Counters wrap: only differences are used.
 */
struct endpoint {
	struct sock_owner owner;
	struct kept_counters base;    /* the socket's counters when its current life began */
	u32 past[PROTOSTAT_COUNTERS]; /* of earlier lives, and events */
	u32 reported[PROTOSTAT_COUNTERS];
	u32 changes;   /* odd while `past` and `base` do not fit together */
	u32 known;     /* base is valid */
	u32 ended;     /* the kernel has closed the socket; it may be connected again */
	u32 drops;     /* where drops are reported; 0: TCP_DROPS */
	u32 visited;   /* the last iteration that saw it */
	u32 passive;   /* a handshake of a listener is under way */
	u32 confirmed; /* the last iteration in which its owner had a file of it */
	u32 pad;
	u64 inode; /* of its file, if that was seen: an address may be reused */
};

SOCK_SLOT(struct endpoint);

/* Set by the iterator, of which one pass runs at a time. */
u64 session;
u32 pass;

/* 6.18 counts drops of UDP sockets elsewhere (51132b99f01c). */
struct sock___counters {
	struct numa_drop_counters *sk_drop_counters;
} __attribute__((preserve_access_index));

inline_ u32 drops_of_udp(struct sock *sk)
{
	struct sock___counters *newer = (void *)sk;
	struct numa_drop_counters *counters = NULL;

	if (bpf_core_field_exists(newer->sk_drop_counters))
		counters = BPF_CORE_READ(newer, sk_drop_counters);
	if (counters)
		return BPF_CORE_READ(counters, drops0.counter) +
		       BPF_CORE_READ(counters, drops1.counter);
	return BPF_CORE_READ(sk, sk_drops.counter);
}

#define LOADED(tp, member) (tp)->member

/* READ: LOADED, or BPF_CORE_READ for an address. */
#define READ_KEPT(READ, tp, k)                                                              \
	do {                                                                                \
		(k)->count[KEPT_SEGS_IN] = READ(tp, segs_in);                               \
		(k)->count[KEPT_SEGS_OUT] = READ(tp, segs_out);                             \
		(k)->count[KEPT_DATA_SEGS_IN] = READ(tp, data_segs_in);                     \
		(k)->count[KEPT_DATA_SEGS_OUT] = READ(tp, data_segs_out);                   \
		(k)->count[KEPT_OUT_OF_ORDER] = READ(tp, rcv_ooopack);                      \
		(k)->count[KEPT_DSACKS] = READ(tp, dsack_dups);                             \
		(k)->count[KEPT_REORDERINGS] = READ(tp, reord_seen);                        \
		(k)->count[KEPT_DROPS] = READ(tp, inet_conn.icsk_inet.sk.sk_drops.counter); \
	} while (0)

inline_ void read_kept(struct tcp_sock *tp, struct kept_counters *k)
{
	READ_KEPT(LOADED, tp, k);
}

/* Until 5.15 (8520e224f547) the cgroup's address had flags, and was in a union. */
struct sock_cgroup_data___flags {
	u64 val;
} __attribute__((preserve_access_index));
struct sock___flags {
	struct sock_cgroup_data___flags sk_cgrp_data;
} __attribute__((preserve_access_index));

/* The cgroup of the process that made the socket, or of its listener's; 0: not known. */
inline_ u64 cgroup_of_sock(struct sock *sk)
{
	struct sock___flags *older = (void *)sk;
	struct cgroup *c;
	u64 flags;

	if (!bpf_core_field_exists(sk->sk_cgrp_data))
		return 0;
	if (bpf_core_field_exists(sk->sk_cgrp_data.cgroup)) {
		c = BPF_CORE_READ(sk, sk_cgrp_data.cgroup);
	} else {
		flags = BPF_CORE_READ(older, sk_cgrp_data.val);
		c = flags & 3 ? NULL : (struct cgroup *)flags;
	}
	return c ? BPF_CORE_READ(c, kn, id) : 0;
}

inline_ bool netns_wanted(u32 netns)
{
	return !filter_netns || netns == filter_netns;
}

/* Threads may have different names: a process still is one row. */
inline_ void take_process(struct sock_owner *o)
{
	take_owner(o);
	o->id.tid = 0;
	process_comm(o->id.comm);
}

/*
 * Adds to the row of the socket's owner what is not in it yet. k: its counters now, read
 * after `changes`; what changes meanwhile is for the next time.
 */
inline_ void report_endpoint(struct sock *sk, struct endpoint *e, const struct kept_counters *k,
			     u32 changes)
{
	u32 drops = e->drops ?: PROTOSTAT_TCP_DROPS, events = 0;
	struct protostat_key key = {};
	struct protostat_value *v;
	u32 more[PROTOSTAT_COUNTERS];
	u64 any = 0;

#pragma unroll
	for (u32 i = 0; i < PROTOSTAT_COUNTERS; i++)
		more[i] = e->past[i] - e->reported[i];
	if (!e->ended) {
#pragma unroll
		for (u32 i = 0; i < KEPT_TCP; i++)
			more[reported_as[i]] += k->count[i] - e->base.count[i];
		if (drops == PROTOSTAT_LISTEN_DROPS)
			more[PROTOSTAT_LISTEN_DROPS] +=
				k->count[KEPT_DROPS] - e->base.count[KEPT_DROPS];
		else if (drops == PROTOSTAT_UDP_DROPS)
			more[PROTOSTAT_UDP_DROPS] +=
				k->count[KEPT_DROPS] - e->base.count[KEPT_DROPS];
		else
			more[PROTOSTAT_TCP_DROPS] +=
				k->count[KEPT_DROPS] - e->base.count[KEPT_DROPS];
	}
	if (changes & 1 || *(volatile u32 *)&e->changes != changes)
		return;
#pragma unroll
	for (u32 i = 0; i < PROTOSTAT_COUNTERS; i++) {
		/* Nothing if negative; branches would be too many paths for the verifier. */
		u32 negative = (s32)more[i] >> 31;

		barrier_var(negative);
		more[i] &= ~negative;
		any |= more[i];
	}
	if (!any)
		return;
#pragma unroll
	for (u32 i = 0; i < PROTOSTAT_EVENTS; i++)
		events += more[i];
	key.netns = netns_of(NULL, sk);
	if (!owner_wanted(&e->owner) || !netns_wanted(key.netns)) {
		count_n(LEDGER_FILTERED, events);
	} else {
		if (e->owner.id.known)
			key.who = e->owner.id;
		else
			key.who.cgroup = cgroup_of_sock(sk);
		v = counters_row(&key);
		if (v) {
#pragma unroll
			for (u32 i = 0; i < PROTOSTAT_COUNTERS; i++)
				__sync_fetch_and_add(&v->count[i], more[i]);
		} else if (events) {
			count_n(LEDGER_UNTRACKED, events - 1); /* one is counted */
		}
	}
#pragma unroll
	for (u32 i = 0; i < PROTOSTAT_COUNTERS; i++)
		e->reported[i] += more[i];
}

/* The kernel answers a segment for which there is no socket. */
inline_ int lone_reset(struct sk_buff *answered)
{
	struct protostat_key key = { .netns = answered ? netns_of(answered, NULL) : 0 };
	struct protostat_value *v;

	if (filter.on || !netns_wanted(key.netns)) {
		count_n(LEDGER_FILTERED, answered ? 3 : 1);
		return 0;
	}
	v = counters_row(&key);
	if (!v)
		return 0;
	__sync_fetch_and_add(&v->count[PROTOSTAT_RESETS_OUT], 1);
	if (answered) {
		__sync_fetch_and_add(&v->count[PROTOSTAT_SEGS_IN], 1);
		__sync_fetch_and_add(&v->count[PROTOSTAT_SEGS_OUT], 1);
	}
	return 0;
}

/* With the socket locked. Of a socket that is older than tracing, what happens from now on. */
inline_ struct endpoint *endpoint_of(struct sock *sk, struct tcp_sock *tp)
{
	struct endpoint *e = sock_slot(sk, true);

	if (e && !e->known) {
		read_kept(tp, &e->base);
		e->known = 1;
	}
	return e;
}

#define ADD_EVENT(e, counter, n) __sync_fetch_and_add(&(e)->past[counter], n)

inline_ void life_begins(struct endpoint *e, const struct kept_counters *k)
{
	__sync_fetch_and_add(&e->changes, 1);
	e->base = *k;
	e->ended = 0;
	e->known = 1;
	__sync_fetch_and_add(&e->changes, 1);
}

inline_ void life_ends(struct endpoint *e, const struct kept_counters *k)
{
	u32 drops = e->drops ?: PROTOSTAT_TCP_DROPS;

	if (e->ended)
		return;
	__sync_fetch_and_add(&e->changes, 1);
#pragma unroll
	for (u32 i = 0; i < KEPT_TCP; i++)
		ADD_EVENT(e, reported_as[i], k->count[i] - e->base.count[i]);
	if (drops == PROTOSTAT_LISTEN_DROPS)
		ADD_EVENT(e, PROTOSTAT_LISTEN_DROPS,
			  k->count[KEPT_DROPS] - e->base.count[KEPT_DROPS]);
	else
		ADD_EVENT(e, PROTOSTAT_TCP_DROPS, k->count[KEPT_DROPS] - e->base.count[KEPT_DROPS]);
	e->ended = 1;
	__sync_fetch_and_add(&e->changes, 1);
}

/*
 * A socket counts the SYN it was made for, but not the answer. Two packets may make
 * two sockets at once; one of them receives nothing else, and is dropped.
 */
inline_ void handshake_ends(struct endpoint *e, u32 newstate, const struct kept_counters *k)
{
	if (newstate == TCP_CLOSE && k->count[KEPT_SEGS_IN] <= 1)
		e->base.count[KEPT_SEGS_IN] = k->count[KEPT_SEGS_IN];
	else
		ADD_EVENT(e, PROTOSTAT_SEGS_OUT, 1);
	e->passive = 0;
}

/* A socket without a file: after its process has closed it, or before it is accepted. */
inline_ void report_orphan(struct sock *sk, struct tcp_sock *tp, struct endpoint *e)
{
	struct kept_counters k;

	if (has_file(tp) || !e->owner.id.known)
		return;
	read_kept(tp, &k);
	report_endpoint(sk, e, &k, e->changes);
}

TRACING(on_state, "tp_btf/inet_sock_set_state")
{
	struct sock *sk = (struct sock *)ctx[0];
	u32 oldstate = (u32)ctx[1], newstate = (u32)ctx[2];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct kept_counters k = {};
	struct endpoint *e;
	bool is_new;

	if (!tp || oldstate == newstate)
		return 0;
	e = sock_slot(sk, true);
	if (!e)
		return 0;
	is_new = !e->known;
	if (newstate == TCP_SYN_SENT || newstate == TCP_LISTEN) {
		read_kept(tp, &k);
		e->drops = newstate == TCP_LISTEN ? PROTOSTAT_LISTEN_DROPS : PROTOSTAT_TCP_DROPS;
		life_begins(e, &k);
		if (newstate == TCP_SYN_SENT)
			ADD_EVENT(e, PROTOSTAT_ACTIVE_OPENS, 1);
		if (in_users_call(tp))
			take_process(&e->owner);
		return 0;
	}
	if (oldstate == TCP_LISTEN && newstate == TCP_SYN_RECV) {
		/* A copy of the listener. */
		*e = sock_slots_zero;
		e->passive = 1;
		life_begins(e, &k);
		ADD_EVENT(e, PROTOSTAT_PASSIVE_OPENS, 1);
		return 0;
	}
	if (is_new || newstate == TCP_CLOSE)
		read_kept(tp, &k);
	if (is_new) {
		life_begins(e, &k);
		if (newstate == TCP_CLOSE && (k.count[KEPT_SEGS_IN] || k.count[KEPT_SEGS_OUT]))
			count(LEDGER_UNMATCHED);
	}
	if (!e->owner.id.known && users_transition(tp, newstate))
		take_process(&e->owner);
	if (oldstate == TCP_SYN_RECV && e->passive)
		handshake_ends(e, newstate, &k);
	if (newstate == TCP_CLOSE) {
		if (oldstate == TCP_ESTABLISHED || oldstate == TCP_CLOSE_WAIT)
			ADD_EVENT(e, PROTOSTAT_ESTABLISHED_RESETS, 1);
		if ((oldstate == TCP_SYN_SENT || oldstate == TCP_SYN_RECV) && sk->sk_err)
			ADD_EVENT(e, PROTOSTAT_FAILED, 1);
		life_ends(e, &k);
		return 0;
	}
	report_orphan(sk, tp, e);
	return 0;
}

TRACING(on_destroy, "tp_btf/tcp_destroy_sock")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct endpoint *e = tp ? sock_slot(sk, false) : NULL;
	struct kept_counters k;

	if (!e || !e->known)
		return 0;
	/* The task that closes the last file, unless that is the iterator's. */
	if (!e->owner.id.known && in_users_call(tp) && current_tgid() != own_tgid)
		take_process(&e->owner);
	read_kept(tp, &k);
	report_endpoint(sk, e, &k, e->changes);
	return sock_slot_forget(sk);
}

TRACING(on_retransmit, "tp_btf/tcp_retransmit_skb")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_skb_cb *cb = (void *)((struct sk_buff *)ctx[1])->cb;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct endpoint *e;
	u32 cause, n;

	if (!tp || retransmit_failed(ctx))
		return 0;
	e = endpoint_of(sk, tp);
	if (!e)
		return 0;
	cause = retransmit_cause(tp, congestion_state(tp));
	n = BPF_CORE_READ(cb, tcp_gso_segs);
#pragma unroll
	for (u32 i = 0; i < RETRANSMIT_CAUSES; i++)
		if (cause == i)
			ADD_EVENT(e, PROTOSTAT_RETRANSMITS + i, n);
	report_orphan(sk, tp, e);
	return 0;
}

/* Of the listener; the segment is in no socket. */
TRACING(on_synack, "tp_btf/tcp_retransmit_synack")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct endpoint *e = tp ? endpoint_of(sk, tp) : NULL;

	if (!e)
		return 0;
	ADD_EVENT(e, PROTOSTAT_RETRANSMITS + RETRANSMIT_SYN_ACK, 1);
	ADD_EVENT(e, PROTOSTAT_SEGS_OUT, 1);
	return 0;
}

/* In answer to a segment, or by the socket. A verifier that takes the
 * argument for valid (before 6.14) would remove a comparison with NULL. */
TRACING(on_reset_sent, "tp_btf/tcp_send_reset")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct sk_buff *answered = (struct sk_buff *)function_arg(ctx, 1);
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	struct endpoint *e;

	if (!tp)
		return lone_reset(answered);
	e = endpoint_of(sk, tp);
	if (!e)
		return 0;
	ADD_EVENT(e, PROTOSTAT_RESETS_OUT, 1);
	/* close() and disconnection change the state before they send one. */
	if (answered || e->ended)
		ADD_EVENT(e, PROTOSTAT_SEGS_OUT, 1);
	return 0;
}

TRACING(on_reset_received, "tp_btf/tcp_receive_reset")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct endpoint *e = tp ? endpoint_of(sk, tp) : NULL;

	if (e)
		ADD_EVENT(e, PROTOSTAT_RESETS_IN, 1);
	return 0;
}

inline_ void identify_process(struct sock_owner *o, struct task_struct *t, u32 tgid)
{
	o->id.cgroup = task_cgroup(t);
	o->id.pid = tgid;
	o->id.tid = 0;
	o->id.uid = t->cred->uid.val;
	task_comm(t->group_leader, o->id.comm);
	o->wanted = !filter.on || filter_matches(t);
	o->id.known = 1;
}

/*
 * A task has a file of the socket. The owner remains the first one that was known, as
 * long as it has one, too: until a pass has not seen it there.
 */
inline_ void visit_owner(struct endpoint *e, struct task_struct *t)
{
	u32 tgid = task_tgid(t);

	if (!e->owner.id.known || e->owner.id.pid == tgid ||
	    (e->confirmed && e->confirmed + 1 < pass)) {
		identify_process(&e->owner, t, tgid);
		e->confirmed = pass;
	} else if (!e->confirmed) {
		e->confirmed = pass; /* from now on it has to be seen */
	}
}

/*
 * NULL: another task's file of this socket has been visited in this pass.
 * The file is not closed meanwhile, but packets may arrive.
 */
inline_ struct endpoint *visited(struct sock *sk, struct task_struct *t, u64 inode)
{
	struct endpoint *e = sock_slot(sk, true);

	if (!e)
		return NULL;
	if (e->inode && e->inode != inode) /* another socket at the same address */
		*e = sock_slots_zero;
	e->inode = inode;
	visit_owner(e, t);
	if (e->visited == pass)
		return NULL;
	e->visited = pass;
	return e;
}

inline_ void visit(struct sock *sk, struct endpoint *e, struct kept_counters *k, u32 changes,
		   u32 protocol, u32 state)
{
	if (protocol == IPPROTO_UDP) {
		k->count[KEPT_DROPS] = drops_of_udp(sk);
		e->drops = PROTOSTAT_UDP_DROPS;
	} else if (state == TCP_LISTEN) {
		e->drops = PROTOSTAT_LISTEN_DROPS;
	}
	if (!e->known) {
		if (protocol == IPPROTO_TCP && state == TCP_CLOSE)
			return;
		/* A UDP socket that the first pass did not see is newer. */
		if (protocol == IPPROTO_TCP || pass == 1)
			e->base = *k;
		e->known = 1;
	}
	report_endpoint(sk, e, k, changes);
}

/* Before the socket's counters are read. */
inline_ u32 changes_of(struct endpoint *e)
{
	return *(volatile u32 *)&e->changes;
}

SEC("iter/task_file")
int on_file(struct bpf_iter__task_file *ctx)
{
	struct task_struct *t = ctx->task;
	struct file *file = ctx->file;
	struct kept_counters k = {};
	u32 protocol, changes;
	struct socket *socket;
	struct endpoint *e;
	struct tcp_sock *tp;
	struct sock *sk;

	if (ctx->meta->session_id != session) {
		session = ctx->meta->session_id;
		pass++;
	}
	if (!t || !file)
		return 0;
	if (has_task_storage()) { /* which came with bpf_sock_from_file, 5.11 (4f19cab76136) */
		socket = bpf_sock_from_file(file);
		sk = socket ? socket->sk : NULL;
		protocol = sk ? sk->sk_protocol : 0;
		if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)
			return 0;
		e = visited(sk, t, file->f_inode->i_ino);
		if (!e)
			return 0;
		changes = changes_of(e);
		tp = protocol == IPPROTO_TCP ? bpf_skc_to_tcp_sock(sk) : NULL;
		if (tp)
			READ_KEPT(LOADED, tp, &k);
		else if (protocol == IPPROTO_TCP)
			return 0;
		visit(sk, e, &k, changes, protocol, sk->__sk_common.skc_state);
		return 0;
	}
	if ((file->f_inode->i_mode & MODE_FORMAT) != MODE_SOCKET)
		return 0;
	socket = file->private_data;
	sk = BPF_CORE_READ(socket, sk);
	protocol = BPF_CORE_READ(sk, sk_protocol);
	if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)
		return 0;
	e = visited(sk, t, file->f_inode->i_ino);
	if (!e)
		return 0;
	changes = changes_of(e);
	if (protocol == IPPROTO_TCP)
		READ_KEPT(BPF_CORE_READ, (struct tcp_sock *)sk, &k);
	visit(sk, e, &k, changes, protocol, BPF_CORE_READ(sk, __sk_common.skc_state));
	return 0;
}

/* With --udp. */
inline_ int datagram(struct sock *sk, u64 result, bool sent)
{
	struct protostat_key key = {};
	struct protostat_value *v;

	if ((s32)result < 0 || sk->sk_protocol != IPPROTO_UDP || !keep_current())
		return 0;
	key.netns = netns_of(NULL, sk);
	if (!netns_wanted(key.netns))
		return filtered();
	identify_current(&key.who);
	key.who.tid = 0;
	process_comm(key.who.comm);
	v = counters_row(&key);
	if (v)
		__sync_fetch_and_add(&v->count[sent ? PROTOSTAT_UDP_OUT : PROTOSTAT_UDP_IN], 1);
	return 0;
}

#define RECEIVE_PEEK 2        /* the datagram stays in the socket */
#define RECEIVE_ERRORS 0x2000 /* receives from the error queue */

inline_ int datagram_taken(struct sock *sk, u64 result, u64 flags)
{
	return flags & (RECEIVE_PEEK | RECEIVE_ERRORS) ? 0 : datagram(sk, result, false);
}

PROGRAM(on_send, "tp_btf/sock_send_length", datagram((struct sock *)ctx[0], ctx[1], true))
PROGRAM(on_receive, "tp_btf/sock_recv_length",
	datagram_taken((struct sock *)ctx[0], ctx[1], ctx[2]))
PROGRAM(on_send_ipv4, "fexit/inet_sendmsg", datagram(((struct socket *)ctx[0])->sk, ctx[3], true))
PROGRAM(on_send_ipv6, "fexit/inet6_sendmsg", datagram(((struct socket *)ctx[0])->sk, ctx[3], true))
PROGRAM(on_receive_ipv4, "fexit/inet_recvmsg",
	datagram_taken(((struct socket *)ctx[0])->sk, ctx[4], ctx[3]))
PROGRAM(on_receive_ipv6, "fexit/inet6_recvmsg",
	datagram_taken(((struct socket *)ctx[0])->sk, ctx[4], ctx[3]))
