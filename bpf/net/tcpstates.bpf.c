// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcpstates: state changes of TCP sockets, and the time in each state. */
#include "lib/net/acceptors.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/core/program.bpf.h"
#include "net/tcpstates.h"

RECORD(tcpstates_event);

struct change {
	u64 time;
	u64 in_state_ns;
	u32 oldstate;
	u32 newstate;
};

struct history {
	u64 since; /* 0: the state is older than tracing */
	struct sock_owner owner;
	struct change first; /* time 0: no pending change */
};

SOCK_SLOT(struct history);

/*
 * A client's local port is chosen after its first change of state, and the remote end of a
 * server's socket is set after the first one: flow filters use the next change for these.
 */
inline_ bool incomplete(const struct flow *f, u32 oldstate, u32 newstate)
{
	return (newstate == TCP_SYN_SENT && !f->lport) || oldstate == TCP_LISTEN;
}

inline_ int show(struct sock *sk, const struct flow *f, const struct sock_owner *o,
		 const struct change *c)
{
	struct tcpstates_event *e = keep_connection(o, f) ? emit_begin(sizeof(*e)) : NULL;

	if (!e)
		return 0;
	e->head.time_ns = c->time;
	e->flow = *f;
	e->socket = (u64)sk;
	e->in_state_ns = c->in_state_ns;
	e->owner = o->id;
	e->oldstate = c->oldstate;
	e->newstate = c->newstate;
	return emit_end(e);
}

TRACING(on_state, "tp_btf/inet_sock_set_state")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct change c = { .oldstate = (u32)ctx[1], .newstate = (u32)ctx[2] };
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk); /* not SCTP or MPTCP */
	struct history *h;
	struct flow f = {};

	if (!tp || c.oldstate == c.newstate)
		return 0;
	h = sock_slot(sk, true);
	if (!h)
		return 0;
	c.time = bpf_ktime_get_ns();
	c.in_state_ns = h->since ? since(h->since, c.time) : 0;
	h->since = c.time;
	take_acceptor(tp, &h->owner);
	if (c.newstate == TCP_SYN_SENT || !h->owner.id.known) {
		if (c.newstate == TCP_LISTEN ? in_users_call(tp) : users_transition(tp, c.newstate))
			take_owner(&h->owner);
	}
	flow_of(tp, &f);
	if (h->first.time) {
		show(sk, &f, &h->owner, &h->first);
		h->first.time = 0;
	} else if (flow_filters_on() && incomplete(&f, c.oldstate, c.newstate)) {
		h->first = c;
		return 0;
	}
	return show(sk, &f, &h->owner, &c);
}

PROGRAM(on_destroy, "tp_btf/tcp_destroy_sock", sock_slot_forget((struct sock *)ctx[0]))
