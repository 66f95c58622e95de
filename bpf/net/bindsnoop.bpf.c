// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bindsnoop: addresses and ports to which sockets are bound. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/net/sock_call.bpf.h"
#include "net/bindsnoop.h"

RECORD(bindsnoop_event);

OPT(bool, with_errors);
OPT(bool, counting);

TABLE(binds, struct flow, struct bindsnoop_count)

/* Bits of inet_flags; separate members before 6.6. */
#define INET_FREEBIND 11
#define INET_TRANSPARENT 15
#define INET_NO_PORT 18

struct inet_sock___members {
	u8 freebind : 1;
	u8 transparent : 1;
	u8 bind_address_no_port : 1;
} __attribute__((preserve_access_index));

inline_ u32 options_of(struct sock *sk)
{
	struct inet_sock___members *old = (void *)sk;
	struct inet_sock *inet = (void *)sk;
	u32 set = 0;
	u64 flags;

	if (bpf_core_field_exists(inet->inet_flags)) {
		flags = BPF_CORE_READ(inet, inet_flags);
		set |= flags >> INET_FREEBIND & 1 ? BINDSNOOP_FREEBIND : 0;
		set |= flags >> INET_TRANSPARENT & 1 ? BINDSNOOP_TRANSPARENT : 0;
		set |= flags >> INET_NO_PORT & 1 ? BINDSNOOP_NO_PORT : 0;
	} else {
		set |= BPF_CORE_READ_BITFIELD_PROBED(old, freebind) ? BINDSNOOP_FREEBIND : 0;
		set |= BPF_CORE_READ_BITFIELD_PROBED(old, transparent) ? BINDSNOOP_TRANSPARENT : 0;
		set |= BPF_CORE_READ_BITFIELD_PROBED(old, bind_address_no_port) ?
			       BINDSNOOP_NO_PORT :
			       0;
	}
	if (BPF_CORE_READ_BITFIELD_PROBED(&sk->__sk_common, skc_reuse))
		set |= BINDSNOOP_REUSEADDR;
	if (BPF_CORE_READ_BITFIELD_PROBED(&sk->__sk_common, skc_reuseport))
		set |= BINDSNOOP_REUSEPORT;
	return set;
}

ON_ENTRY(bind, sock_call_begin(ctx->args[0], ctx->args[1], 0))

UNPREEMPTED(on_exit, "tracepoint/syscalls/sys_exit_bind", struct exit_ctx)
{
	u64 start;
	struct sock_call *c = call_ends(&start);
	struct bindsnoop_count *row;
	struct bindsnoop_event *e;
	struct flow f = {};
	struct sock *sk;

	if (!c)
		return 0;
	sk = current_sock(c->fd);
	if (!sk || !flow_read(sk, &f))
		return 0; /* not an IPv4 or IPv6 socket */
	if (ctx->ret < 0 && !read_sockaddr(c->address, SOCKADDR_READ, f.local, &f.lport, &f.ip)) {
		f.lport = 0;
		__builtin_memset(f.local, 0, sizeof(f.local));
	}
	if ((ctx->ret < 0 && !with_errors) || !flow_wanted(&f))
		return filtered();
	if (counting) {
		row = binds_row(&f);
		if (row)
			__sync_fetch_and_add(&row->binds, 1);
		return 0;
	}
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->flow = f;
	e->ret = ctx->ret;
	e->protocol = BPF_CORE_READ(sk, sk_protocol);
	e->options = options_of(sk);
	e->interface = BPF_CORE_READ(sk, __sk_common.skc_bound_dev_if);
	identify_current(&e->who);
	return emit_end(e);
}
