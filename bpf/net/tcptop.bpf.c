// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tcptop: bytes sent and received by process and TCP connection. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/net/sock_receives.bpf.h"
#include "net/tcptop.h"

TABLE(connections, struct tcptop_key, struct tcptop_value)

/* The running process: its id, user, and group leader's name; with one helper call. */
inline_ void identify_process(u32 *pid, u32 *uid, char comm[COMM_LEN])
{
	struct task_struct *t;

	if (has_current_btf()) {
		t = bpf_get_current_task_btf();
		*pid = task_tgid(t);
		*uid = t->cred->uid.val;
		task_comm(t->group_leader, comm);
		return;
	}
	*pid = current_tgid();
	*uid = (u32)bpf_get_current_uid_gid();
	process_comm(comm);
}

inline_ int tcp_moved(const struct tcp_sock *tp, u64 bytes, bool sent)
{
	struct tcptop_key key = {};
	struct tcptop_value *v;

	if (!keep_current())
		return 0;
	flow_of(tp, &key.flow);
	if (!flow_wanted(&key.flow))
		return filtered();
	/* Threads may have different names: a connection still is one row. */
	identify_process(&key.pid, &key.uid, key.comm);
	v = connections_row(&key);
	if (!v)
		return 0;
	__sync_fetch_and_add(sent ? &v->sends : &v->receives, 1);
	__sync_fetch_and_add(sent ? &v->tx_bytes : &v->rx_bytes, bytes);
	return 0;
}
