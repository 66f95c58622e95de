/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receives from TCP sockets, in addition to sends.
 *
 * Contexts: the running task, outside of interrupts, preemptible at functions.
 */
#ifndef CORETAP_SOCK_RECEIVES_BPF_H
#define CORETAP_SOCK_RECEIVES_BPF_H

#include "lib/net/sock_io.bpf.h"

PROGRAM(on_receive, "tp_btf/sock_recv_length",
	sock_io((struct sock *)ctx[0], ctx[1], ctx[2], false))

PROGRAM(on_receive_ipv4, "fexit/inet_recvmsg", socket_io(ctx, ctx[4], ctx[3], false))
PROGRAM(on_receive_ipv6, "fexit/inet6_recvmsg", socket_io(ctx, ctx[4], ctx[3], false))
PROGRAM(on_splice, "fexit/tcp_splice_read", socket_io(ctx, ctx[5], 0, false))

#endif
