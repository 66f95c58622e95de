/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receives on TCP sockets that moved data, in addition to sends (lib/net/sock_io.bpf.h).
 *
 * Contexts: the running task, outside of interrupts, preemptible at functions.
 */
#ifndef CORETAP_SOCK_RECEIVE_BPF_H
#define CORETAP_SOCK_RECEIVE_BPF_H

#include "lib/net/sock_io.bpf.h"
#include "lib/core/program.bpf.h"

PROGRAM(on_receive, "tp_btf/sock_recv_length",
	sock_io((struct sock *)ctx[0], ctx[1], ctx[2], false))

SOCK_IO_RETURN(on_receive_ipv4, inet_recvmsg, ctx[4], ctx[3], false)
SOCK_IO_RETURN(on_receive_ipv6, inet6_recvmsg, ctx[4], ctx[3], false)
SOCK_IO_RETURN(on_splice, tcp_splice_read, ctx[5], 0, false)

#endif
