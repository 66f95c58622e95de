// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcptracer: opened, accepted and closed TCP connections. */
#include "lib/net/fd_tcp.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/core/text.bpf.h"
#include "net/tcptracer.h"

RECORD(tcptracer_event);

struct connection {
	struct sock_owner owner; /* the task that connected */
	u64 ended;               /* by the peer: waits for the task that closes the file */
};

SOCK_SLOT(struct connection);

inline_ int show(u32 kind, struct flow *f, const struct sock_owner *o, u64 time)
{
	struct tcptracer_event *e = keep_connection(o, f) ? emit_begin(sizeof(*e)) : NULL;

	if (!e)
		return 0;
	e->head.time_ns = time;
	e->flow = *f;
	e->owner = o->id;
	e->kind = kind;
	return emit_end(e);
}

inline_ void closed(struct sock *sk, const struct tcp_sock *tp, u32 newstate)
{
	struct connection *c = sock_slot(sk, false);
	u64 now = bpf_ktime_get_ns();
	struct sock_owner owner = {};
	struct flow f = {};

	if (users_transition(tp, newstate))
		take_owner(&owner);
	else if (c)
		owner = c->owner;
	if (!owner.id.known && has_file(tp)) {
		c = sock_slot(sk, true);
		if (c) {
			c->ended = now;
			count(LEDGER_UNMATCHED); /* until then */
			return;
		}
	}
	flow_of(tp, &f);
	show(TCPTRACER_CLOSE, &f, &owner, now);
}

TRACING(on_state, "tp_btf/inet_sock_set_state")
{
	struct sock *sk = (struct sock *)ctx[0];
	u32 oldstate = (u32)ctx[1], newstate = (u32)ctx[2];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk); /* not SCTP or MPTCP */
	struct sock_owner owner = {};
	struct connection *c;
	struct flow f = {};

	if (!tp || oldstate == newstate)
		return 0;
	if (newstate == TCP_SYN_SENT) {
		c = sock_slot(sk, true);
		if (c) {
			*c = sock_slots_zero;
			take_owner(&c->owner);
		}
	} else if (oldstate == TCP_SYN_SENT && newstate != TCP_CLOSE) {
		/* Both ends may connect to each other: the state is then SYN_RECV. */
		c = sock_slot(sk, false);
		if (c)
			owner = c->owner;
		flow_of(tp, &f);
		show(TCPTRACER_CONNECT, &f, &owner, bpf_ktime_get_ns());
	} else if ((oldstate == TCP_ESTABLISHED && newstate != TCP_CLOSE_WAIT) ||
		   oldstate == TCP_CLOSE_WAIT) {
		closed(sk, tp, newstate);
	}
	return 0;
}

UNPREEMPTED(on_accept, "tracepoint/syscalls/sys_exit_accept,sys_exit_accept4", struct exit_ctx)
{
	struct sock_owner owner = {};
	struct flow f = {};

	if (!accepted_tcp(ctx->ret, &f))
		return 0;
	take_owner(&owner);
	return show(TCPTRACER_ACCEPT, &f, &owner, bpf_ktime_get_ns());
}

TRACING(on_destroy, "tp_btf/tcp_destroy_sock")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct connection *c = sock_slot(sk, false);
	struct sock_owner owner = {};
	struct tcp_sock *tp;
	struct flow f = {};

	if (!c)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp && c->ended) {
		if (in_users_call(tp))
			take_owner(&owner);
		flow_of(tp, &f);
		count_n(LEDGER_UNMATCHED, -1);
		show(TCPTRACER_CLOSE, &f, &owner, c->ended);
		c->ended = 0;
	}
	sock_slot_forget(sk);
	return 0;
}
