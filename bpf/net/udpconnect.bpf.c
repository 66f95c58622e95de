// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* udpconnect: UDP sockets that are connected to an address. */
#include "lib/net/sock_call.bpf.h"
#include "net/udpconnect.h"

RECORD(udpconnect_event);

OPT(bool, failed_only);

ON_ENTRY(connect, sock_call_begin(ctx->args[0], ctx->args[1], 0))

UNPREEMPTED(on_exit, "tracepoint/syscalls/sys_exit_connect", struct exit_ctx)
{
	u64 start;
	struct sock_call *c = call_ends(&start);
	struct udpconnect_event *e;
	struct flow f = {};
	struct sock *sk;
	bool known;
	u32 protocol;

	if (!c)
		return 0;
	sk = current_sock(c->fd);
	protocol = sk ? BPF_CORE_READ(sk, sk_protocol) : 0;
	if ((protocol != IPPROTO_UDP && protocol != IPPROTO_UDPLITE) || !flow_read(sk, &f))
		return 0;
	/* Without an IPv4 or IPv6 address it is a disconnect, or fails for that reason. */
	known = read_sockaddr(c->address, SOCKADDR_READ, f.remote, &f.rport, &f.ip);
	if (!known && ctx->ret >= 0)
		return 0;
	if ((failed_only && ctx->ret >= 0) || !flow_wanted(&f))
		return filtered();
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->flow = f;
	e->ret = ctx->ret;
	e->protocol = protocol;
	identify_current(&e->who);
	return emit_end(e);
}
