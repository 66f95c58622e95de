/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network namespace of a packet.
 *
 * Contexts: tasks and softirqs.
 */
#ifndef CORETAP_SKB_NETNS_BPF_H
#define CORETAP_SKB_NETNS_BPF_H

#include "lib/core/coretap.bpf.h"

#define SKB_DST_PTRMASK (~1UL)
#define LEAST_NAMESPACE 0xe0000000 /* inode numbers of namespaces are above */

inline_ u32 netns_of_device(struct net_device *dev)
{
	u32 inode = BPF_CORE_READ(dev, nd_net.net, ns.inum);

	return inode >= LEAST_NAMESPACE ? inode : 0;
}

/*
 * sk: of the packet, or NULL. TCP clears the packet's device, or reuses
 * the field. The route also has a device, unless its field is reused as well.
 */
inline_ u32 netns_of(struct sk_buff *skb, struct sock *sk)
{
	struct dst_entry *route;
	u32 inode;

	if (sk)
		return BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	inode = netns_of_device(BPF_CORE_READ(skb, dev));
	if (inode)
		return inode;
	route = (void *)(BPF_CORE_READ(skb, _skb_refdst) & SKB_DST_PTRMASK);
	return netns_of_device(BPF_CORE_READ(route, dev));
}

#endif
