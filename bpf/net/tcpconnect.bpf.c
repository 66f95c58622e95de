// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcpconnect: attempts to open TCP connections. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/net/fd_tcp.bpf.h"
#include "lib/syscall/syscall.bpf.h"
#include "net/tcpconnect.h"

RECORD(tcpconnect_event);

OPT(bool, counting);
OPT(bool, failed_only);
OPT(bool, with_lport);

TABLE(connects, struct flow, struct tcpconnect_count)

/*
 * An attempt that waits for its outcome, or for the kernel to
 * choose a port. With --failed it is kept until connect(2) returns.
 */
struct attempt {
	u64 start;
	struct task_id owner;
	u64 shown;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u64); /* the socket's address */
	__type(value, struct attempt);
} attempts SEC(".maps");

inline_ int show(struct flow *f, const struct attempt *a, u32 error)
{
	struct tcpconnect_event *e;
	struct tcpconnect_count *c;

	if (!flow_wanted(f))
		return filtered();
	if (counting) {
		if (!with_lport)
			f->lport = 0;
		c = connects_row_of(f, &a->owner);
		if (c)
			__sync_fetch_and_add(&c->connects, 1);
		return 0;
	}
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = failed_only ? bpf_ktime_get_ns() : a->start;
	e->flow = *f;
	e->owner = a->owner;
	e->error = error;
	return emit_end(e);
}

/* Two programs may show a connection: only one of them gets the attempt. */
inline_ bool take_attempt(struct sock *sk, struct attempt *a)
{
	u64 key = (u64)sk;
	struct attempt *kept = bpf_map_lookup_elem(&attempts, &key);

	if (!kept)
		return false;
	*a = *kept;
	if (bpf_map_delete_elem(&attempts, &key))
		return false;
	count_n(LEDGER_UNMATCHED, -1);
	return true;
}

inline_ int starts(struct sock *sk, struct tcp_sock *tp)
{
	struct attempt a = {};
	struct flow f = {};
	u64 key = (u64)sk;

	if (!keep_current())
		return 0;
	a.start = bpf_ktime_get_ns();
	identify_current(&a.owner);
	flow_of(tp, &f);
	if (!failed_only && (!with_lport || f.lport))
		return show(&f, &a, 0);
	if (bpf_map_update_elem(&attempts, &key, &a, BPF_ANY))
		count(LEDGER_UNTRACKED);
	else if (!failed_only)
		count(LEDGER_UNMATCHED); /* until it is shown */
	return 0;
}

/* With --failed: the end of an attempt, unless connect(2) is about to end it. */
inline_ int ends(struct sock *sk, struct tcp_sock *tp, u32 newstate)
{
	u64 key = (u64)sk;
	struct attempt *kept = bpf_map_lookup_elem(&attempts, &key), unknown = {};
	u32 error = sk->sk_err;
	struct flow f = {};

	if (newstate != TCP_CLOSE) {
		bpf_map_delete_elem(&attempts, &key);
		return 0;
	}
	/* Attempts that are filtered, or older than tracing, have no entry. */
	if (!kept && filter.on)
		return 0;
	if (kept && !error && in_users_call(tp) && sk->sk_shutdown != SOCK_SHUTDOWN_MASK)
		return 0;
	flow_of(tp, &f);
	show(&f, kept ?: &unknown, error);
	if (kept)
		kept->shown = 1;
	return 0;
}

TRACING(on_state, "tp_btf/inet_sock_set_state")
{
	struct sock *sk = (struct sock *)ctx[0];
	u32 oldstate = (u32)ctx[1], newstate = (u32)ctx[2];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk); /* not SCTP or MPTCP */
	struct attempt a = {};
	struct flow f = {};

	if (!tp || oldstate == newstate)
		return 0;
	if (newstate == TCP_SYN_SENT)
		return starts(sk, tp);
	if (oldstate == TCP_SYN_SENT && failed_only)
		return ends(sk, tp, newstate);
	if (oldstate != TCP_SYN_SENT || !with_lport || !take_attempt(sk, &a))
		return 0;
	flow_of(tp, &f);
	return show(&f, &a, 0);
}

#define EALREADY 114
#define EINPROGRESS 115
#define EISCONN 106

/* The result is not an attempt's outcome: the attempt continues, or there is none. */
inline_ bool undecided(s64 ret)
{
	return ret == -EINPROGRESS || ret == -EALREADY || ret == -EISCONN || ret == -EINTR ||
	       call_interrupted(ret);
}

/* The requested remote address; the local end as far as it is bound. */
inline_ bool flow_wished(struct sock *sk, const u64 *args, struct flow *f)
{
	return flow_read(sk, f) && read_sockaddr(args[1], args[2], f->remote, &f->rport, &f->ip);
}

/* With --failed: attempts rejected by the kernel before it sent anything. */
inline_ int call_ends(struct sock *sk, const u64 *args, s64 ret)
{
	u64 key = (u64)sk;
	struct attempt *kept = bpf_map_lookup_elem(&attempts, &key), a = {};
	struct flow f = {};
	bool told;

	if (undecided(ret))
		return 0;
	told = kept && kept->shown;
	if (kept)
		a = *kept;
	bpf_map_delete_elem(&attempts, &key);
	if (told || ret >= 0 || !flow_wished(sk, args, &f) || (!kept && !keep_current()))
		return 0;
	if (!kept)
		identify_current(&a.owner);
	return show(&f, &a, -ret);
}

/* The port is chosen after the change to SYN_SENT; the next change comes with the peer's answer. */
TRACING(on_exit, "tp_btf/sys_exit")
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	bool compat = call_is_compat(regs);
	u32 index = call_index(call_number(regs), compat);
	struct attempt a = {};
	struct flow f = {};
	struct sock *sk;
	u64 args[6];

	if (index != CALL_CONNECT && index != CALLS_COMPAT + CALL32_CONNECT)
		return 0;
	call_arguments(regs, compat, args);
	sk = tcp_behind(current_sock(args[0]));
	if (!sk)
		return 0;
	if (failed_only)
		return call_ends(sk, args, (s64)ctx[1]);
	return take_attempt(sk, &a) && flow_read(sk, &f) ? show(&f, &a, 0) : 0;
}

TRACING(on_destroy, "tp_btf/tcp_destroy_sock")
{
	u64 key = ctx[0];

	bpf_map_delete_elem(&attempts, &key);
	return 0;
}
