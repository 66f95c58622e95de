// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcpsubnet: bytes sent over TCP, by destination subnet. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/net/sock_io.bpf.h"
#include "net/tcpsubnet.h"

SUMS(amounts, struct tcpsubnet_slot)

/* Values are indexes of subnets. IPv4 addresses are also stored as mapped ones. */
FILTER_PREFIXES(subnets_ipv4);
FILTER_PREFIXES(subnets_ipv6);

inline_ u8 *subnet_of(const struct flow *f)
{
	struct address_prefix key = {};

	prefix_key(&key, f->remote, f->ip);
	if (f->ip == 4)
		return bpf_map_lookup_elem(&subnets_ipv4, &key);
	return bpf_map_lookup_elem(&subnets_ipv6, &key);
}

inline_ int tcp_moved(const struct tcp_sock *tp, u64 bytes, bool sent)
{
	struct tcpsubnet_slot *slot = amounts_slot();
	struct flow f = {};
	u32 number;
	u8 *subnet;

	if (!slot || !keep_current())
		return 0;
	flow_of(tp, &f);
	subnet = flow_wanted(&f) ? subnet_of(&f) : NULL;
	if (!subnet)
		return filtered();
	number = *subnet;
	barrier_var(number);
	number &= TCPSUBNET_MOST - 1;
	__sync_fetch_and_add(&slot->of[number].sends, 1);
	__sync_fetch_and_add(&slot->of[number].bytes, bytes);
	return 0;
}
