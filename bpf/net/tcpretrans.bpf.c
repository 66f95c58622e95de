// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcpretrans: retransmitted TCP segments. */
#include "lib/net/sock_owners.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/net/retransmit.bpf.h"
#include "net/tcpretrans.h"

RECORD(tcpretrans_event);

OPT(bool, counting);
OPT(bool, with_probes);

TABLE(flows, struct flow, struct tcpretrans_count)
SOCK_SLOT(struct sock_owner);

inline_ struct sock_owner *owner_slot(struct sock *sk)
{
	return sock_slot(sk, true);
}

inline_ int again(struct flow *f, struct sock_owner *owner, struct tcpretrans_event *what)
{
	static const struct sock_owner nobody;
	struct tcpretrans_event *e;
	struct tcpretrans_count *c;

	if (!keep_connection(owner ?: &nobody, f))
		return 0;
	if (counting) {
		c = flows_row_of(f, &(owner ?: &nobody)->id);
		if (c) {
			__sync_fetch_and_add(&c->retransmits, what->segments);
			__sync_fetch_and_add(&c->bytes, what->length);
			for (u32 i = 0; i < RETRANSMIT_CAUSES; i++)
				if (what->cause == i)
					__sync_fetch_and_add(&c->causes[i], what->segments);
		}
		return 0;
	}
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	*e = *what;
	e->head.time_ns = bpf_ktime_get_ns();
	e->flow = *f;
	if (owner)
		e->owner = owner->id;
	return emit_end(e);
}

TRACING(on_retransmit, "tp_btf/tcp_retransmit_skb")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_skb_cb *cb = (void *)((struct sk_buff *)ctx[1])->cb;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct tcpretrans_event what = {};
	struct flow f = {};

	if (!tp || retransmit_failed(ctx))
		return 0;
	what.congestion = congestion_state(tp);
	what.cause = retransmit_cause(tp, what.congestion);
	if (what.cause == RETRANSMIT_LOSS_PROBE) {
		what.kind = TCPRETRANS_PROBE;
		if (!with_probes)
			return filtered();
	}
	what.state = sk->__sk_common.skc_state;
	what.sequence = BPF_CORE_READ(cb, seq);
	what.length = BPF_CORE_READ(cb, end_seq) - what.sequence;
	what.segments = BPF_CORE_READ(cb, tcp_gso_segs) ?: 1;
	flow_of(tp, &f);
	return again(&f, known_owner(tp, sock_slot(sk, false)), &what);
}

/* A connection in the handshake has no socket yet. */
TRACING(on_synack, "tp_btf/tcp_retransmit_synack")
{
	struct request_sock *req = (struct request_sock *)ctx[1];
	struct tcpretrans_event what = { .kind = TCPRETRANS_SYNACK,
					 .cause = RETRANSMIT_SYN_ACK,
					 .state = TCP_SYN_RECV };
	struct flow f = {};

	ends_of(&req->__req_common, &f);
	f.lport = req->__req_common.skc_num;
	what.sequence = BPF_CORE_READ((struct tcp_request_sock *)req, snt_isn);
	what.length = 1;
	what.segments = 1;
	return again(&f, NULL, &what);
}
