/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Headers after that of an IPv6 packet. */
#ifndef CORETAP_IPV6_BPF_H
#define CORETAP_IPV6_BPF_H

#include "lib/core/coretap.bpf.h"

#define IPV6_EXTENSIONS 8 /* limit of extension headers followed in a packet */
#define IPV6_LEAST_EXTENSION 8
#define IPV6_OFFSET 0xfff8 /* of a fragment; the lower bits are flags */

enum ipv6_next {
	IPV6_HOP_BY_HOP = 0,
	IPV6_ROUTING = 43,
	IPV6_FRAGMENT = 44,
	IPV6_AUTHENTICATION = 51,
	IPV6_NOTHING = 59,
	IPV6_DESTINATION = 60,
};

struct ipv6_payload {
	u32 at;        /* its offset */
	u8 protocol;   /* IPV6_NOTHING: not known */
	bool headless; /* not the first fragment, which has the transport header */
};

inline_ bool is_ipv6_extension(u8 next)
{
	return next == IPV6_HOP_BY_HOP || next == IPV6_ROUTING || next == IPV6_FRAGMENT ||
	       next == IPV6_AUTHENTICATION || next == IPV6_DESTINATION;
}

/* Length of the extension in bytes, from its first four bytes. */
inline_ u32 ipv6_extension_size(u8 kind, const u8 *first)
{
	if (kind == IPV6_FRAGMENT)
		return IPV6_LEAST_EXTENSION;
	if (kind == IPV6_AUTHENTICATION)
		return (first[1] + 2) * 4;
	return (first[1] + 1) * 8;
}

/* Skips the header of this kind; false: it does not end within the packet before `end`. */
inline_ bool skip_ipv6_extension(const u8 *packet, u32 end, struct ipv6_payload *p)
{
	u8 first[4];

	if (p->at + IPV6_LEAST_EXTENSION > end ||
	    bpf_probe_read_kernel(first, sizeof(first), packet + p->at))
		return false;
	if (p->protocol == IPV6_FRAGMENT && (first[2] << 8 | first[3]) & IPV6_OFFSET)
		p->headless = true;
	p->at += ipv6_extension_size(p->protocol, first);
	p->protocol = first[0];
	return true;
}

/* `at` and `protocol` are initialized from the IPv6 header. */
inline_ void find_ipv6_payload(const u8 *packet, u32 end, struct ipv6_payload *p)
{
	for (int i = 0; i < IPV6_EXTENSIONS && !p->headless; i++) {
		if (!is_ipv6_extension(p->protocol))
			return;
		if (!skip_ipv6_extension(packet, end, p))
			break;
	}
	if (is_ipv6_extension(p->protocol))
		p->protocol = IPV6_NOTHING;
}

#endif
