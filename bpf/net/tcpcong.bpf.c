// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcpcong: time of TCP connections in each congestion-control state. */
#include "lib/net/acceptors.bpf.h"
#include "lib/aggregate/extreme.bpf.h"
#include "lib/core/program.bpf.h"
#include "net/tcpcong.h"

OPT(bool, distributed);

TABLE(flows, struct tcpcong_flow, struct tcpcong_times)
HISTOGRAM(durations, struct tcpcong_key)

struct connection {
	struct sock_owner owner;
	u64 since; /* start of the state; 0: older than tracing */
	u32 state;
	u32 known; /* whether `state` is valid */
};

SOCK_SLOT(struct connection);

/* When all programs were attached. */
volatile u64 traced_since;

SEC("run/each_cpu")
int on_start(void *ctx)
{
	if (!traced_since)
		traced_since = bpf_ktime_get_ns();
	return 0;
}

inline_ u32 congestion_of(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD_PROBED(&tp->inet_conn, icsk_ca_state);
}

/* Members that no other tool reads. */
struct tcp_congestion_ops___name {
	char name[16];
} __attribute__((preserve_access_index));
struct inet_connection_sock___ops {
	const struct tcp_congestion_ops___name *icsk_ca_ops;
} __attribute__((preserve_access_index));
struct tcp_sock___window {
	u32 snd_cwnd;
	u32 snd_ssthresh;
} __attribute__((preserve_access_index));

/* The last value of this interval, in the form of the largest one. */
inline_ void set_last(struct extreme *x, u64 value)
{
	u32 interval = extreme_interval;

	x->slots[interval & 1] = (u64)(u16)interval << EXTREME_BITS | value;
}

/* Replaces the whole value: a concurrent reader gets the previous one. */
inline_ void add_to_row(struct tcp_sock *tp, struct flow *f, u32 old, u64 ns,
			const struct connection *c, bool ends)
{
	struct inet_connection_sock___ops *icsk = (void *)&tp->inet_conn;
	const struct tcp_congestion_ops___name *algorithm = BPF_CORE_READ(icsk, icsk_ca_ops);
	struct tcp_sock___window *window = (void *)tp;
	struct tcpcong_flow key = { .flow = *f };
	struct tcpcong_times *row, next;

	bpf_core_read_str(key.algorithm, sizeof(key.algorithm), &algorithm->name);
	row = ends ? bpf_map_lookup_elem(&flows, &key) : flows_row(&key);
	if (!row)
		return;
	next = *row;
	next.changes += !ends;
	for (u32 i = 0; i < TCPCONG_STATES; i++)
		if (i == old)
			next.ns[i] += ns;
	next.since = c->since;
	next.state = ends ? 0 : c->state + 1;
	if (!ends) {
		set_last(&next.window, BPF_CORE_READ(window, snd_cwnd));
		set_last(&next.threshold, BPF_CORE_READ(window, snd_ssthresh));
	}
	bpf_map_update_elem(&flows, &key, &next, BPF_EXIST);
}

/* The connection leaves this state, for another one or because it ends. */
inline_ void leaves(struct tcp_sock *tp, struct connection *c, u32 old, u32 state, bool ends)
{
	struct tcpcong_key key = { .state = old };
	u64 now = bpf_ktime_get_ns(), start = c->since ?: traced_since;
	u64 ns = start ? since(start, now) : 0;
	struct flow f = {};

	c->since = now;
	c->state = state;
	c->known = !ends;
	flow_of(tp, &f);
	if (filter.on)
		take_acceptor(tp, &c->owner);
	if (!owner_wanted(&c->owner) || !flow_wanted(&f)) {
		if (!ends)
			count(LEDGER_FILTERED);
		return;
	}
	if (distributed)
		durations_add(&key, ns);
	else
		add_to_row(tp, &f, old, ns, c, ends);
}

/* Called just before the kernel sets the state; not in 5.10. */
TRACING(on_set, "tp_btf/tcp_cong_state_set")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	u32 old, state = (u8)ctx[1];
	struct connection *c;

	if (!tp)
		return 0;
	old = congestion_of(tp);
	if (old == state)
		return 0;
	c = sock_slot(sk, true);
	if (c)
		leaves(tp, c, old, state, false);
	return 0;
}

/* Otherwise: compares the state with the previous one, which is unknown for older connections. */
inline_ int look(struct sock *sk)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct connection *c = tp ? sock_slot(sk, true) : NULL;
	u32 state;

	if (!c)
		return 0;
	state = congestion_of(tp);
	if (c->known && c->state == state)
		return 0;
	if (c->known) {
		leaves(tp, c, c->state, state, false);
		return 0;
	}
	c->since = bpf_ktime_get_ns();
	c->state = state;
	c->known = 1;
	return 0;
}

PROGRAM(after_alert, "fexit/tcp_fastretrans_alert", look((struct sock *)ctx[0]))
PROGRAM(after_loss, "fexit/tcp_enter_loss", look((struct sock *)ctx[0]))
PROGRAM(after_cwr, "fexit/tcp_enter_cwr", look((struct sock *)ctx[0]))
PROGRAM(after_probe, "fexit/tcp_process_tlp_ack", look((struct sock *)ctx[0]))
PROGRAM(on_segment, "tp_btf/tcp_probe", look((struct sock *)ctx[0]))
PROGRAM(on_retransmit, "tp_btf/tcp_retransmit_skb", look((struct sock *)ctx[0]))

/* A connection's first state is set with its first SYN, and starts then. */
TRACING(on_state, "tp_btf/inet_sock_set_state")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	u32 newstate = (u32)ctx[2];
	struct connection *c;

	if (!tp)
		return 0;
	if (newstate == TCP_CLOSE) {
		c = sock_slot(sk, false);
		if (c && c->known)
			leaves(tp, c, c->state, TCP_CA_Open, true);
		forget_acceptor(tp);
		return 0;
	}
	if (newstate == TCP_LISTEN)
		return 0;
	c = sock_slot(sk, newstate == TCP_SYN_SENT || newstate == TCP_ESTABLISHED);
	if (!c)
		return 0;
	if (!c->known && (newstate == TCP_SYN_SENT || newstate == TCP_ESTABLISHED)) {
		c->since = bpf_ktime_get_ns();
		c->state = TCP_CA_Open;
		c->known = 1;
	}
	if (users_transition(tp, newstate))
		learn_owner(tp, newstate, &c->owner);
	return 0;
}

PROGRAM(on_destroy, "tp_btf/tcp_destroy_sock", sock_slot_forget((struct sock *)ctx[0]))
