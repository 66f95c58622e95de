// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcprtt: TCP round-trip times as a histogram. */
#include "lib/net/sock_owners.bpf.h"
#include "lib/aggregate/aggregate.bpf.h"
#include "net/tcprtt.h"

OPT(bool, raw);
OPT(bool, by_local);
OPT(bool, by_remote);

/* The kernel keeps eight times the smoothed value. */
#define SRTT_SHIFT 3

struct connection {
	struct sock_owner owner;
	u64 sent; /* time when the segment of the newest sample was sent */
	u32 sample_us;
	u32 known; /* the two members above are valid */
};

SOCK_SLOT(struct connection);

inline_ struct sock_owner *owner_slot(struct sock *sk)
{
	struct connection *c = sock_slot(sk, true);

	return c ? &c->owner : NULL;
}

HISTOGRAM(times, struct tcprtt_key)

/* The newest sample; 0: no new one since the previous segment. */
inline_ u32 new_sample(struct sock *sk, struct tcp_sock *tp)
{
	struct connection *c = sock_slot(sk, true);
	u64 sent = tp->rack.mstamp;
	u32 sample = tp->rack.rtt_us;
	bool is_new;

	if (!c)
		return 0;
	is_new = c->known && (c->sent != sent || c->sample_us != sample);
	c->sent = sent;
	c->sample_us = sample;
	c->known = 1;
	return is_new ? sample : 0;
}

/* NULL: not known, or not in use (no filter, no --by). */
inline_ struct sock_owner *owner_of(struct sock *sk, const struct tcp_sock *tp)
{
	struct connection *c;

	if (!filter.on && !owner_parts)
		return NULL;
	c = sock_slot(sk, false);
	return known_owner(tp, c ? &c->owner : NULL);
}

/* Each segment of an established connection, before the kernel processes its acknowledgment. */
TRACING(on_segment, "tp_btf/tcp_probe")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	static const struct sock_owner nobody;
	struct tcprtt_key key = {};
	struct sock_owner *owner;
	struct flow f = {};
	u32 us;

	if (!tp)
		return 0;
	us = raw ? new_sample(sk, tp) : tp->srtt_us >> SRTT_SHIFT;
	if (!us)
		return 0;
	if (filter.on || flow_filters_on() || by_local || by_remote)
		flow_of(tp, &f);
	owner = owner_of(sk, tp);
	if (!keep_connection(owner ?: &nobody, &f))
		return 0;
	if (by_local || by_remote)
		key.ip = f.ip;
	if (by_local)
		__builtin_memcpy(key.local, f.local, sizeof(key.local));
	if (by_remote)
		__builtin_memcpy(key.remote, f.remote, sizeof(key.remote));
	return times_add_of(&key, us * 1000ULL, &(owner ?: &nobody)->id);
}
