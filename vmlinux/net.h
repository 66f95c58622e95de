/* SPDX-License-Identifier: GPL-2.0-only */
/* Sockets and TCP. */
#pragma once

/* include/net/net_namespace.h, include/net/netns/ipv4.h */
struct netns_ipv4 {
	u8 sysctl_tcp_recovery;
};

struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

/* include/uapi/linux/in6.h */
struct in6_addr {
	union {
		__u8 u6_addr8[16];
		__be16 u6_addr16[8];
		__be32 u6_addr32[4];
	} in6_u;
};

/* include/uapi/linux/in.h */
enum {
	IPPROTO_TCP = 6,
	IPPROTO_UDP = 17,
	IPPROTO_UDPLITE = 136,
	IPPROTO_MPTCP = 262,
};

/* include/net/sock.h */
enum sock_flags {
	SOCK_DONE = 1,
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	unsigned char skc_reuse : 4;
	unsigned char skc_reuseport : 1;
	int skc_bound_dev_if;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	unsigned long skc_flags;
};

typedef struct {
	int owned;
} socket_lock_t;

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct numa_drop_counters {
	atomic_t drops0;
	atomic_t drops1;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_type;
	u16 sk_protocol;
	struct pid *sk_peer_pid;
	int sk_err;
	u32 sk_ack_backlog;
	u32 sk_max_ack_backlog;
	struct socket *sk_socket;
	socket_lock_t sk_lock;
	u8 sk_shutdown;
	atomic_t sk_drops;
	struct numa_drop_counters *sk_drop_counters;
	struct sock_cgroup_data sk_cgrp_data;
};

/* include/linux/net.h */
struct socket {
	struct sock *sk;
};

/* include/net/request_sock.h */
struct request_sock {
	struct sock_common __req_common;
};

/* include/net/inet_sock.h, include/net/inet_connection_sock.h */
struct inet_sock {
	struct sock sk;
	unsigned long inet_flags;
	__be16 inet_sport;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5;
	__u8 icsk_pending;
};

/* include/linux/netdevice.h, include/net/dst.h */
struct net_device {
	char name[16];
	int ifindex;
	possible_net_t nd_net;
	unsigned int real_num_rx_queues;
	unsigned int real_num_tx_queues;
};

struct dst_entry {
	struct net_device *dev;
};

/* include/linux/skbuff.h, include/net/dropreason-core.h */
struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	__s64 tstamp; /* ktime_t */
	char cb[48];
	unsigned long _skb_refdst;
	unsigned int len;
	int skb_iif;
	__be16 protocol;
	__u16 queue_mapping;
	__u16 network_header;
	__u16 mac_header;
	unsigned int tail;
	unsigned char *head;
	unsigned char *data;
};

enum skb_drop_reason {
	SKB_DROP_REASON_NOT_SPECIFIED = 2,
};

/* include/net/tcp_states.h */
enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT = 2,
	TCP_SYN_RECV = 3,
	TCP_FIN_WAIT1 = 4,
	TCP_FIN_WAIT2 = 5,
	TCP_TIME_WAIT = 6,
	TCP_CLOSE = 7,
	TCP_CLOSE_WAIT = 8,
	TCP_LAST_ACK = 9,
	TCP_LISTEN = 10,
	TCP_CLOSING = 11,
	TCP_NEW_SYN_RECV = 12,
};

/* include/uapi/linux/tcp.h, include/linux/tcp.h, include/net/tcp.h */
enum tcp_ca_state {
	TCP_CA_Open = 0,
	TCP_CA_Disorder = 1,
	TCP_CA_CWR = 2,
	TCP_CA_Recovery = 3,
	TCP_CA_Loss = 4,
};

struct tcp_rack {
	u64 mstamp;
	u32 rtt_us;
};

struct tcp_options_received {
	u16 sack_ok : 3;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct tcp_rack rack;
	u32 srtt_us;
	u64 bytes_acked;
	u64 bytes_sent;
	u32 rcv_nxt;
	u32 copied_seq;
	u32 write_seq;
	u32 snd_nxt;
	u32 snd_una;
	u64 bytes_received;
	u64 bytes_retrans;
	u32 segs_in;
	u32 segs_out;
	u32 data_segs_in;
	u32 data_segs_out;
	u32 rcv_ooopack;
	u32 dsack_dups;
	u32 reord_seen;
	struct tcp_options_received rx_opt;
	bool is_mptcp;
};

/* net/mptcp/protocol.h */
struct mptcp_sock {
	struct sock *first;
};

struct tcp_request_sock {
	u32 snt_isn;
};

struct tcp_skb_cb {
	__u32 seq;
	__u32 end_seq;
	u16 tcp_gso_segs;
};
