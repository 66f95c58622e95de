// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcptop: bytes sent and received by process and TCP connection. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/net/sock_receive.bpf.h"
#include "net/tcptop.h"

TABLE(connections, struct tcptop_key, struct tcptop_value)

inline_ int tcp_moved(const struct tcp_sock *tp, u64 bytes, bool sent)
{
	struct tcptop_key key = {};
	struct tcptop_value *v;

	if (!keep_current())
		return 0;
	flow_of(tp, &key.flow);
	if (!flow_wanted(&key.flow)) {
		count(LEDGER_FILTERED);
		return 0;
	}
	/* Threads may have different names: a connection still is one row. */
	identify_process(&key.pid, &key.uid, key.comm);
	v = connections_row(&key);
	if (!v)
		return 0;
	__sync_fetch_and_add(sent ? &v->sends : &v->receives, 1);
	__sync_fetch_and_add(sent ? &v->tx_bytes : &v->rx_bytes, bytes);
	return 0;
}
