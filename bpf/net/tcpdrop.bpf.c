// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcpdrop: TCP packets dropped by the kernel: reason, connection, and location. */
#include "lib/net/accepted.bpf.h"
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/stack/cpu_walk.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "lib/core/program.bpf.h"
#include "net/ipv6.bpf.h"
#include "net/skb_netns.bpf.h"
#include "net/tcpdrop.h"

RECORD(tcpdrop_event);

OPT(bool, counting);
OPT(bool, by_reason);
const volatile bool wanted_reasons[TCPDROP_REASONS] = {};

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd

#define IP_HEADER 20
#define IP_FRAGMENT 0x1fff
#define IPV6_HEADER 40
#define TCP_FLAGS_END 14 /* bytes of the TCP header up to its flags */

/* Reasons came with 5.17 (c504e5c2f964); 6.12 also passes the receiving socket, 6.1 does not. */
TP_ARGS(kfree_skb);

TABLE(drops, struct tcpdrop_key, struct tcpdrop_count)
SOCK_SLOT(struct sock_owner);

/* For packets without a known socket. */
MAP(HASH, owners, 1, struct flow, struct sock_owner);

inline_ void keep_owner(const struct flow *f, const struct sock_owner *o)
{
	map_put(&owners, f, o);
}

struct scratch_use {
	u64 used;
};

CPU_SLOTS(scratch_uses, struct scratch_use);

inline_ u16 be16_at(const u8 *at)
{
	return at[0] << 8 | at[1];
}

inline_ void swap_ends(struct flow *f)
{
	u16 port = f->lport;
	u32 *local = (u32 *)f->local, *remote = (u32 *)f->remote;

	f->lport = f->rport;
	f->rport = port;
	for (int i = 0; i < 4; i++) {
		u32 word = local[i];

		local[i] = remote[i];
		remote[i] = word;
	}
}

/* The headers of a packet are before `end`, its data may be elsewhere. */
struct packet {
	u8 *head;
	u32 end;
	u32 tcp;       /* offset of its TCP header */
	bool headless; /* not the first fragment, which has the TCP header */
};

/* False: not TCP. */
inline_ bool read_ipv4(struct packet *p, u32 at, struct flow *f)
{
	u8 ip[IP_HEADER];

	if (at + IP_HEADER > p->end || bpf_probe_read_kernel(ip, IP_HEADER, p->head + at))
		return false;
	if (ip[0] >> 4 != 4 || ip[9] != IPPROTO_TCP)
		return false;
	f->ip = 4;
	__builtin_memcpy(f->local, ip + 12, 4);
	__builtin_memcpy(f->remote, ip + 16, 4);
	p->tcp = at + (ip[0] & 15) * 4;
	p->headless = be16_at(ip + 6) & IP_FRAGMENT;
	return true;
}

inline_ bool read_ipv6(struct packet *p, u32 at, struct flow *f)
{
	struct ipv6_payload payload = { .at = at + IPV6_HEADER };
	u8 ip[IPV6_HEADER];

	if (at + IPV6_HEADER > p->end || bpf_probe_read_kernel(ip, IPV6_HEADER, p->head + at))
		return false;
	if (ip[0] >> 4 != 6)
		return false;
	payload.protocol = ip[6];
	find_ipv6_payload(p->head, p->end, &payload);
	if (payload.protocol != IPPROTO_TCP)
		return false;
	f->ip = 6;
	__builtin_memcpy(f->local, ip + 8, 16);
	__builtin_memcpy(f->remote, ip + 24, 16);
	p->tcp = payload.at;
	p->headless = payload.headless;
	return true;
}

inline_ void read_tcp(const struct packet *p, struct tcpdrop_event *e)
{
	u8 tcp[TCP_FLAGS_END];

	if (p->headless || p->tcp + TCP_FLAGS_END > p->end ||
	    bpf_probe_read_kernel(tcp, sizeof(tcp), p->head + p->tcp))
		return;
	e->whole = 1;
	e->flow.lport = be16_at(tcp);
	e->flow.rport = be16_at(tcp + 2);
	e->flags = tcp[TCP_FLAGS_END - 1];
}

/* False: not TCP. */
inline_ bool read_packet(struct sk_buff *skb, struct tcpdrop_event *e)
{
	u16 protocol = port_of(BPF_CORE_READ(skb, protocol));
	struct packet p = { .head = BPF_CORE_READ(skb, head), .end = BPF_CORE_READ(skb, tail) };
	u32 at = BPF_CORE_READ(skb, network_header);

	if (protocol == ETH_P_IP ? !read_ipv4(&p, at, &e->flow) :
				   protocol != ETH_P_IPV6 || !read_ipv6(&p, at, &e->flow))
		return false;
	read_tcp(&p, e);
	e->received = BPF_CORE_READ(skb, skb_iif) != 0;
	if (e->received)
		swap_ends(&e->flow);
	return true;
}

/* The receiver's owner, else the sender's, if both are on this host. */
inline_ struct sock_owner *owner_of(const struct flow *f)
{
	struct flow sender = *f;
	struct sock_owner *o = bpf_map_lookup_elem(&owners, f);

	if (o)
		return o;
	swap_ends(&sender);
	return bpf_map_lookup_elem(&owners, &sender);
}

inline_ bool reason_wanted(u32 reason)
{
	if (by_reason)
		return reason < TCPDROP_REASONS && wanted_reasons[reason];
	return tp_args_kfree_skb < 3 ||
	       reason > bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_NOT_SPECIFIED);
}

/* Packets may be dropped in an interrupt while the scratch holds another stack. */
inline_ u64 stack_of_drop(void *ctx)
{
	struct scratch_use *scratch = cpu_slot(&scratch_uses);
	u64 id;

	if (!scratch || scratch->used)
		return counted(LEDGER_STACK_FAILED);
	*(volatile u64 *)&scratch->used = 1;
	id = stack_of_kernel(ctx, 0);
	*(volatile u64 *)&scratch->used = 0;
	return id;
}

inline_ int count_drop(void *ctx, const struct tcpdrop_event *what, const struct task_id *owner)
{
	struct tcpdrop_key key = { .location = what->location, .reason = what->reason };
	struct tcpdrop_count *c;

	if (stack_kernel)
		key.kernel_stack = stack_of_drop(ctx);
	c = drops_row_of(&key, owner);
	if (c)
		__sync_fetch_and_add(&c->drops, 1);
	return 0;
}

TRACING(on_drop, "tp_btf/kfree_skb")
{
	static const struct sock_owner nobody;
	struct sk_buff *skb = (void *)ctx[0];
	struct tcpdrop_event what = {}, *e;
	struct sock *sk = NULL;
	struct sock_owner *owner = NULL;
	u16 family;

	if (!read_packet(skb, &what))
		return 0;
	if (tp_args_kfree_skb >= 3)
		what.reason = (u32)ARG(ctx, 2);
	if (!reason_wanted(what.reason))
		return filtered();
	if (tp_args_kfree_skb >= 4)
		sk = (void *)ARG(ctx, 3);
	if (!sk)
		sk = skb->sk;
	if (sk) {
		family = BPF_CORE_READ(sk, __sk_common.skc_family);
		if (family == SOCK_AF_INET || family == SOCK_AF_INET6) {
			what.state = BPF_CORE_READ(sk, __sk_common.skc_state);
			owner = sock_slot(sk, false);
		}
	}
	what.flow.netns = netns_of(skb, sk);
	if (!owner || !owner->id.known)
		owner = owner_of(&what.flow);
	if (!keep_connection(owner ?: &nobody, &what.flow))
		return 0;
	what.location = function_arg(ctx, 1);
	if (counting)
		return count_drop(ctx, &what, &(owner ?: &nobody)->id);
	e = emit_begin_stack(sizeof(*e));
	if (!e)
		return 0;
	*e = what;
	e->head.time_ns = bpf_ktime_get_ns();
	if (owner)
		e->owner = owner->id;
	return emit_end_stack(ctx, e, sizeof(*e));
}

inline_ void accepted(struct sock *sk, const struct sock_owner *o)
{
	struct flow f = {};

	if (flow_read(sk, &f))
		keep_owner(&f, o);
}

inline_ bool users_state(struct tcp_sock *tp, u32 newstate)
{
	return newstate == TCP_LISTEN ? in_users_call(tp) : users_transition(tp, newstate);
}

/* The running task, as its user, changes the socket's state; the acceptor remains the owner. */
inline_ void learn_owner(const struct flow *f, u32 newstate, struct sock_owner *o)
{
	struct sock_owner *accepted = NULL;
	bool begins = newstate == TCP_SYN_SENT || newstate == TCP_LISTEN;

	if (o->id.known && !begins)
		return;
	if (!begins)
		accepted = bpf_map_lookup_elem(&owners, f);
	if (accepted)
		*o = *accepted;
	else
		take_owner(o);
}

/* Records owners of sockets: packets are dropped in the context of any interrupted task. */
TRACING(on_state, "tp_btf/inet_sock_set_state")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	u32 newstate = (u32)ctx[2];
	struct sock_owner *o;
	struct flow f = {};
	bool users;

	if (!tp)
		return 0;
	flow_of(tp, &f);
	if (newstate == TCP_CLOSE) {
		bpf_map_delete_elem(&owners, &f);
		return 0;
	}
	users = users_state(tp, newstate);
	o = sock_slot(sk, users);
	if (!o)
		return 0;
	if (users)
		learn_owner(&f, newstate, o);
	/* A client has no local port before its second state. */
	if (o->id.known && f.lport && f.rport)
		keep_owner(&f, o);
	return 0;
}

PROGRAM(on_destroy, "tp_btf/tcp_destroy_sock", sock_slot_forget((struct sock *)ctx[0]))
