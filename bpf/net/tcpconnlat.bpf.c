// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcpconnlat: time from the first SYN to the end of a connection attempt. */
#include "lib/core/emit.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/net/sock.bpf.h"
#include "net/tcpconnlat.h"

RECORD(tcpconnlat_event);

OPT(__u64, min_ns);
OPT(bool, failed_only);

struct attempt {
	u64 start; /* 0: none in progress, or not wanted */
	struct task_id owner;
};

SOCK_SLOT(struct attempt);

inline_ void starts(struct sock *sk)
{
	struct attempt *a;

	if (!keep_current()) {
		/* The socket may have belonged to another process before. */
		a = sock_slot(sk, false);
		if (a)
			a->start = 0;
		return;
	}
	a = sock_slot(sk, true);
	if (!a)
		return;
	identify_current(&a->owner);
	a->start = bpf_ktime_get_ns();
}

inline_ int show(const struct tcp_sock *tp, const struct flow *f, const struct attempt *a, u64 now)
{
	u64 latency_ns = since(a->start, now);
	struct tcpconnlat_event *e;

	if (latency_ns < min_ns)
		return filtered();
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = now;
	e->flow = *f;
	e->latency_ns = latency_ns;
	e->owner = a->owner;
	if (failed_only)
		e->error = tp->inet_conn.icsk_inet.sk.sk_err;
	return emit_end(e);
}

inline_ void ends(const struct tcp_sock *tp, struct attempt *a)
{
	bool timed = a && a->start;
	struct flow f = {};

	if (!timed && filter.on) /* it was counted when it began, or is older than tracing */
		return;
	flow_of(tp, &f);
	if (!flow_wanted(&f))
		filtered();
	else if (timed)
		show(tp, &f, a, bpf_ktime_get_ns());
	else
		count(LEDGER_UNMATCHED);
}

TRACING(on_state, "tp_btf/inet_sock_set_state")
{
	struct sock *sk = (struct sock *)ctx[0];
	u32 oldstate = (u32)ctx[1], newstate = (u32)ctx[2];
	struct tcp_sock *tp;
	struct attempt *a;

	if (newstate != TCP_SYN_SENT && oldstate != TCP_SYN_SENT)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk); /* not SCTP or MPTCP */
	if (!tp || oldstate == newstate)
		return 0;
	if (newstate == TCP_SYN_SENT) {
		starts(sk);
		return 0;
	}
	a = sock_slot(sk, false);
	/* Both ends may connect to each other: the state is then SYN_RECV. */
	if (failed_only == (newstate == TCP_CLOSE))
		ends(tp, a);
	if (a)
		a->start = 0;
	return 0;
}

PROGRAM(on_destroy, "tp_btf/tcp_destroy_sock", sock_slot_forget((struct sock *)ctx[0]))
