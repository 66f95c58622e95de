// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* netqtop: packets by queue of network interfaces. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "net/netqtop.h"

OPT(__u32, filter_netns); /* 0: all */
OPT(bool, one_interface);
const volatile char interface[NETQTOP_NAME] = {};

TABLE(queues, struct netqtop_key, struct netqtop_value)

inline_ u32 size_class(u32 bytes)
{
	return bytes < 64    ? 0 :
	       bytes < 512   ? 1 :
	       bytes < 2048  ? 2 :
	       bytes < 16384 ? 3 :
	       bytes < 65536 ? 4 :
			       5;
}

inline_ bool is_interface(const char *name)
{
	const volatile u64 *wanted = (const volatile u64 *)interface;
	const u64 *has = (const u64 *)name;

	return has[0] == wanted[0] && has[1] == wanted[1];
}

inline_ int packet(const struct net_device *dev, struct netqtop_key *key, u32 bytes)
{
	struct netqtop_value *v;

	if (!keep_current())
		return 0;
	key->netns = dev->nd_net.net->ns.inum;
	bpf_core_read_str(key->name, sizeof(key->name), &dev->name);
	if ((filter_netns && key->netns != filter_netns) ||
	    (one_interface && !is_interface(key->name)))
		return filtered();
	key->ifindex = dev->ifindex;
	v = queues_row(key);
	if (!v)
		return 0;
	__sync_fetch_and_add(&v->packets, 1);
	__sync_fetch_and_add(&v->bytes, bytes);
	__sync_fetch_and_add(&v->sizes[size_class(bytes)], 1);
	return 0;
}

/* The packet is passed to the driver. */
TRACING(on_transmit, "tp_btf/net_dev_start_xmit")
{
	const struct sk_buff *skb = (const void *)ctx[0];
	const struct net_device *dev = (const void *)ctx[1];
	struct netqtop_key key = { .direction = NETQTOP_TX };

	key.queue = skb->queue_mapping;
	key.queues = dev->real_num_tx_queues;
	return packet(dev, &key, skb->len);
}

/* Includes the link header, which was already removed; there may be none. */
inline_ u32 length(const struct sk_buff *skb)
{
	u64 header = (u64)skb->data - (u64)skb->head - skb->mac_header;

	return skb->len + (header < 256 ? header : 0);
}

/* Delivered by the driver. queue_mapping is the queue plus 1; 0: not set by the driver. */
TRACING(on_receive, "tp_btf/netif_receive_skb")
{
	const struct sk_buff *skb = (const void *)ctx[0];
	const struct net_device *dev = skb->dev;
	struct netqtop_key key = { .direction = NETQTOP_RX };

	key.queue = skb->queue_mapping ? skb->queue_mapping - 1 : 0;
	if (bpf_core_field_exists(dev->real_num_rx_queues))
		key.queues = dev->real_num_rx_queues;
	return packet(dev, &key, length(skb));
}
