/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Retransmitted TCP segments and their causes, at tcp_retransmit_skb.
 *
 * Contexts: tasks and softirqs.
 */
#ifndef CORETAP_RETRANSMIT_BPF_H
#define CORETAP_RETRANSMIT_BPF_H

#include "lib/core/coretap.bpf.h"
#include "lib/net/retransmit.h"

/* Timer value of a tail loss probe; a macro in the kernel, the same since 3.10. */
#define ICSK_TIME_LOSS_PROBE 5

/* A bit of the sysctl tcp_recovery; a macro in the kernel, the same since 4.4. */
#define TCP_RACK_LOSS_DETECTION 1

/* 6.17 removed the detection by counts (1c120191dcec), and with it this member (ba4618885b23). */
struct tcp_sock___counts {
	int lost_cnt_hint;
} __attribute__((preserve_access_index));

/* Newer kernels (6.18, not 6.12) pass the result, and also report failures. */
TP_ARGS(tcp_retransmit_skb);

inline_ bool retransmit_failed(u64 *ctx)
{
	return tp_args_tcp_retransmit_skb >= 3 && (s32)ARG(ctx, 2);
}

inline_ u32 congestion_state(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD_PROBED(&tp->inet_conn, icsk_ca_state);
}

/*
 * A probe is sent by its timer while no loss is known. In recovery
 * the timer may still be set up for a probe that will not be sent.
 */
inline_ bool is_loss_probe(struct tcp_sock *tp, u32 congestion)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;

	return icsk->icsk_pending == ICSK_TIME_LOSS_PROBE && congestion < TCP_CA_Recovery;
}

/*
 * The kernel has one way to mark segments as lost for each connection: RACK if the ends use SACK
 * and the sysctl allows it, as it does by default, else counts of duplicates.
 */
inline_ bool marks_by_rack(struct tcp_sock *tp)
{
	struct tcp_sock___counts *counts = (void *)tp;
	struct net *net = tp->inet_conn.icsk_inet.sk.__sk_common.skc_net.net;

	if (!BPF_CORE_READ_BITFIELD_PROBED(tp, rx_opt.sack_ok))
		return false;
	if (!bpf_core_field_exists(counts->lost_cnt_hint))
		return true;
	return BPF_CORE_READ_BITFIELD_PROBED(net, ipv4.sysctl_tcp_recovery) &
	       TCP_RACK_LOSS_DETECTION;
}

/* The kernel enters the states before it sends. If an acknowledgement or
 * RACK's timer showed the loss is not kept. */
inline_ u32 retransmit_cause(struct tcp_sock *tp, u32 congestion)
{
	if (is_loss_probe(tp, congestion))
		return RETRANSMIT_LOSS_PROBE;
	if (congestion == TCP_CA_Loss)
		return RETRANSMIT_TIMEOUT;
	if (congestion != TCP_CA_Recovery)
		return RETRANSMIT_OTHER;
	return marks_by_rack(tp) ? RETRANSMIT_RACK : RETRANSMIT_FAST;
}

#endif
