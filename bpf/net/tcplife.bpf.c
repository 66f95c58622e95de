// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcplife: TCP sessions. */
#include "lib/net/acceptors.bpf.h"
#include "lib/core/emit.bpf.h"
#include "net/tcplife.h"

RECORD(tcplife_event);

struct session {
	u64 start; /* 0: not seen */
	u64 end;   /* 0: in progress; otherwise only its owner is missing */
	u64 tx, rx;
	struct sock_owner owner;
	u8 active;
	u8 established;
	u8 pad[6];
};

SOCK_SLOT(struct session);

/* In these states the process has closed its direction: a FIN has a sequence number. */
inline_ bool fin_queued(u32 state)
{
	return state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 || state == TCP_CLOSING ||
	       state == TCP_LAST_ACK;
}

/* Bytes acknowledged, without retransmits, SYN and FIN: bytes sent minus bytes in flight.
 */
inline_ u64 acknowledged(const struct tcp_sock *tp, bool fin)
{
	u32 on_its_way = tp->snd_nxt - tp->snd_una;

	if (fin && on_its_way && tp->snd_nxt == tp->write_seq)
		on_its_way--;
	return tp->bytes_sent - tp->bytes_retrans - on_its_way;
}

/* The kernel counts SYN and FIN as a byte each, which is not process data. */
inline_ void take_bytes(const struct tcp_sock *tp, u32 oldstate, struct session *s)
{
	u64 fin_came = bpf_core_enum_value(enum sock_flags, SOCK_DONE);
	u64 tx = tp->bytes_acked, rx = tp->bytes_received;
	bool fin = fin_queued(oldstate);
	u64 not_tx = fin && tp->snd_una == tp->write_seq;
	u64 not_rx = tp->inet_conn.icsk_inet.sk.__sk_common.skc_flags >> fin_came & 1;

	not_tx += s->active;
	s->tx = tx > not_tx ? tx - not_tx : 0;
	s->rx = rx > not_rx ? rx - not_rx : 0;
	/* An older socket: not seen if it sent a SYN that counts, or answered one. */
	if (!s->start && s->tx == acknowledged(tp, fin) + 1)
		s->tx--;
}

inline_ int show(const struct flow *f, const struct session *s)
{
	struct tcplife_event *e;

	if (!owner_wanted(&s->owner))
		return filtered();
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = s->end;
	e->flow = *f;
	e->tx_bytes = s->tx;
	e->rx_bytes = s->rx;
	e->has_begin = s->start != 0;
	e->lasted_ns = since(s->start, s->end);
	e->active = s->active;
	e->established = s->established;
	e->owner = s->owner.id;
	return emit_end(e);
}

inline_ void closed(struct sock *sk, const struct tcp_sock *tp, u32 oldstate)
{
	struct session *kept = sock_slot(sk, false), s = {};
	struct flow f = {};

	if (kept)
		s = *kept;
	take_acceptor(tp, &s.owner);
	flow_of(tp, &f);
	/* Before that, a child socket has no process and its handshake has failed: no session. */
	if (oldstate == TCP_SYN_RECV && !s.active)
		return;
	if (!flow_wanted(&f)) {
		count(LEDGER_FILTERED);
		goto out;
	}
	s.end = bpf_ktime_get_ns();
	if (oldstate != TCP_SYN_SENT)
		s.established = 1;
	take_bytes(tp, oldstate, &s);
	if (!s.owner.id.known && users_transition(tp, TCP_CLOSE))
		take_owner(&s.owner);
	if (!s.owner.id.known && has_file(tp)) {
		/* The peer reset the connection. The task that closes the file is the owner. */
		if (!kept)
			kept = sock_slot(sk, true);
		if (kept) {
			*kept = s;
			count(LEDGER_UNMATCHED); /* until then */
			return;
		}
	}
	show(&f, &s);
out:
	if (kept)
		*kept = sock_slots_zero;
}

TRACING(on_state, "tp_btf/inet_sock_set_state")
{
	struct sock *sk = (struct sock *)ctx[0];
	u32 oldstate = (u32)ctx[1], newstate = (u32)ctx[2];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk); /* not SCTP or MPTCP */
	struct session *s;

	if (!tp || oldstate == newstate || oldstate == TCP_LISTEN)
		return 0;
	if (newstate == TCP_CLOSE) {
		closed(sk, tp, oldstate);
		return 0;
	}
	if (newstate != TCP_ESTABLISHED && !users_transition(tp, newstate))
		return 0;
	s = sock_slot(sk, true);
	if (!s)
		return 0;
	if (newstate == TCP_SYN_SENT) {
		*s = sock_slots_zero;
		s->active = 1;
	}
	if (newstate == TCP_SYN_SENT || newstate == TCP_ESTABLISHED)
		s->start = bpf_ktime_get_ns();
	if (newstate == TCP_ESTABLISHED)
		s->established = 1;
	else
		learn_owner(tp, newstate, &s->owner);
	return 0;
}

TRACING(on_destroy, "tp_btf/tcp_destroy_sock")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct session *s = sock_slot(sk, false);
	struct tcp_sock *tp;
	struct flow f = {};

	if (!s)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp && s->end) {
		if (in_users_call(tp))
			take_owner(&s->owner);
		flow_of(tp, &f);
		show(&f, s);
		count_n(LEDGER_UNMATCHED, -1);
		s->end = 0;
	}
	sock_slot_forget(sk);
	return 0;
}
