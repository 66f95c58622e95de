// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcppktlat: time that received TCP data waits until a process reads it. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/net/sock.bpf.h"
#include "net/tcppktlat.h"

RECORD(tcppktlat_event);

OPT(__u64, min_ns);
OPT(bool, distribution);
OPT(bool, with_softirq);
OPT(__u64, wall_clock_ns); /* wall-clock time at monotonic time 0 */

#define MOST_IN_SOFTIRQ 10000000000ULL /* ns; if more, the wall clock was changed */
#define CLOCKS_DIFFER 100000           /* ns, maximum */

HISTOGRAM(waits, struct tcppktlat_key)

/* A segment in the socket that was not read by a process yet. */
struct segment {
	u64 came;
	u64 softirq_ns;
	u32 seq;
	u32 pad;
};

#define SEGMENTS 16 /* a power of two */

/* If the queue is full, its last segment is used for those that arrive later, too. */
struct unread {
	struct segment queue[SEGMENTS];
	u32 first, behind; /* numbers of segments */
	u32 end;           /* sequence number after the received data */
	u32 pad;
};

SOCK_SLOT(struct unread);

inline_ struct segment *segment(struct unread *u, u32 number)
{
	return &u->queue[number & (SEGMENTS - 1)];
}

/*
 * Time since the network stack timestamped the packet, by the wall clock. The offset of the two
 * clocks is known to a fraction of a microsecond: never returns 0, which means "not known".
 */
inline_ u64 in_softirq(const struct sk_buff *skb, u64 now)
{
	u64 stamp = skb->tstamp, ns = now + wall_clock_ns + CLOCKS_DIFFER - stamp;

	if (!stamp || ns > MOST_IN_SOFTIRQ)
		return 0;
	return ns > CLOCKS_DIFFER ? ns - CLOCKS_DIFFER : 1;
}

/*
 * An established connection has received a packet. The socket is locked until TCP has
 * processed it, and while a process reads data: only one of the programs runs at a time.
 */
TRACING(on_segment, "tp_btf/tcp_probe")
{
	struct sock *sk = (struct sock *)ctx[0];
	const struct sk_buff *skb = (void *)ctx[1];
	const struct tcp_skb_cb *cb = (const void *)skb->cb;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	u32 seq = cb->seq, end, header;
	struct segment *s;
	struct unread *u;
	u8 offset = 0;

	if (!tp || bpf_probe_read_kernel(&offset, 1, skb->data + 12))
		return 0;
	header = offset >> 4 << 2;
	if (skb->len <= header)
		return 0;
	end = seq + skb->len - header;
	/* Skips data already received; out-of-order data counts with what fills the gap. */
	if ((s32)(end - tp->rcv_nxt) <= 0 || (s32)(seq - tp->rcv_nxt) > 0)
		return 0;
	u = sock_slot(sk, true);
	if (!u)
		return 0;
	u->end = end;
	s = segment(u, u->behind - 1);
	if (u->behind != u->first && (s32)(s->seq - seq) >= 0)
		u->behind--; /* TCP had no room for it then: it was retransmitted */
	if (u->behind - u->first >= SEGMENTS)
		return 0;
	s = segment(u, u->behind++);
	s->came = bpf_ktime_get_ns();
	s->seq = seq;
	if (with_softirq)
		s->softirq_ns = in_softirq(skb, s->came);
	return 0;
}

inline_ void distribute(u64 latency_ns, u64 softirq_ns, bool by_process)
{
	struct task_id owner = {};
	struct tcppktlat_key key = { .part = TCPPKTLAT_READER };

	if (owner_parts && by_process)
		identify_current(&owner);
	waits_add_of(&key, latency_ns, &owner);
	if (!with_softirq)
		return;
	key.part = TCPPKTLAT_SOFTIRQ;
	if (softirq_ns)
		waits_add_of(&key, softirq_ns, &owner);
	else
		count(LEDGER_UNMATCHED);
}

inline_ bool reader_wanted(const struct flow *f, bool by_process)
{
	return flow_wanted(f) && (!filter.on || (by_process && filter_matches(current_task())));
}

inline_ int taken(struct tcp_sock *tp, const struct segment *s)
{
	u64 now = bpf_ktime_get_ns(), latency_ns = since(s->came, now);
	bool by_process = in_users_call(tp);
	struct tcppktlat_event *e;
	struct flow f = {};

	flow_of(tp, &f);
	if (latency_ns < min_ns || !reader_wanted(&f, by_process))
		return filtered();
	if (distribution) {
		distribute(latency_ns, s->softirq_ns, by_process);
		return 0;
	}
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = now;
	e->flow = f;
	e->latency_ns = latency_ns;
	e->softirq_ns = s->softirq_ns;
	if (by_process)
		identify_current(&e->who);
	return emit_end(e);
}

/* Its arrival was not seen. */
inline_ int unseen(struct tcp_sock *tp)
{
	struct flow f = {};

	flow_of(tp, &f);
	count(reader_wanted(&f, in_users_call(tp)) ? LEDGER_UNMATCHED : LEDGER_FILTERED);
	return 0;
}

/* Data was copied from a socket, or only peeked at. */
TRACING(on_taken, "tp_btf/tcp_rcv_space_adjust")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct unread *u = sock_slot(sk, false);
	struct segment oldest, *s;
	bool any = false;

	if (!tp)
		return 0;
	if (!u)
		return unseen(tp);
	for (int i = 0; i < SEGMENTS && u->first != u->behind; i++) {
		s = segment(u, u->first);
		if ((s32)(tp->copied_seq - s->seq) <= 0)
			break;
		if (!any)
			oldest = *s;
		any = true;
		u->first++;
	}
	if (any)
		return taken(tp, &oldest);
	if ((s32)(tp->copied_seq - u->end) <= 0)
		return 0;
	u->end = tp->copied_seq;
	return unseen(tp);
}

PROGRAM(on_destroy, "tp_btf/tcp_destroy_sock", sock_slot_forget((struct sock *)ctx[0]))
