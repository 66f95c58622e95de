// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcpaccept: accepted TCP connections. */
#include "lib/net/fd_sock.bpf.h"
#include "lib/core/text.bpf.h"
#include "net/tcpaccept.h"

RECORD(tcpaccept_event);

inline_ int accepted(struct sock *sk)
{
	struct tcpaccept_event *e;
	struct flow f = {};
	u32 protocol;

	if (!sk)
		return 0;
	protocol = BPF_CORE_READ(sk, sk_protocol);
	if ((protocol != IPPROTO_TCP && protocol != IPPROTO_MPTCP) || !flow_read(sk, &f) ||
	    !keep_current())
		return 0;
	if (!flow_wanted(&f))
		return filtered();
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->flow = f;
	identify_current(&e->who);
	return emit_end(e);
}

/*
 * A call that already waits when tracing starts, such as a server's first one, does
 * not run fexit programs when it returns: it is traced at the exit of the system call.
 */
struct passing {
	u64 seen;
};

TASK_SLOT(struct passing);

/* 6.10 moved three arguments into a struct. */
struct proto_accept_arg {
	int err;
};

/* The protocol's function, which io_uring and servers in the kernel also use. */
TRACING(on_accepted, "fexit/inet_csk_accept")
{
	struct passing *p = current_slot(true);

	if (p)
		p->seen = 1;
	if (bpf_core_type_exists(struct proto_accept_arg))
		return accepted((struct sock *)ARG(ctx, 2));
	return accepted((struct sock *)ARG(ctx, 4));
}

UNPREEMPTED(on_exit, "tracepoint/syscalls/sys_exit_accept,sys_exit_accept4", struct exit_ctx)
{
	struct passing *p = current_slot(false);

	if (p && p->seen) {
		p->seen = 0;
		return 0;
	}
	return ctx->ret < 0 ? 0 : accepted(current_sock(ctx->ret));
}
