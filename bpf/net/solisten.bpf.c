// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* solisten: sockets that start to listen. */
#include "lib/net/sock_call.bpf.h"
#include "net/solisten.h"

RECORD(solisten_event);

ON_ENTRY(listen, sock_call_begin(ctx->args[0], 0, ctx->args[1]))

UNPREEMPTED(on_exit, "tracepoint/syscalls/sys_exit_listen", struct exit_ctx)
{
	u64 start;
	struct sock_call *c = call_ends(&start);
	struct solisten_event *e;
	struct flow f = {};
	struct sock *sk;

	if (!c)
		return 0;
	sk = current_sock(c->fd);
	if (!sk || !flow_read(sk, &f))
		return 0; /* not an IPv4 or IPv6 socket */
	if (!flow_wanted(&f))
		return filtered();
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->flow = f;
	e->backlog = c->number;
	e->max_backlog = FOLLOW(sock, sk, sk_max_ack_backlog);
	e->ret = ctx->ret;
	e->protocol = FOLLOW(sock, sk, sk_protocol);
	identify_current(&e->who);
	return emit_end(e);
}
