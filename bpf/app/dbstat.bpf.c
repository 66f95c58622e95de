// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* dbstat: latency of database queries, as histograms. */
#include "lib/aggregate/aggregate.bpf.h"
#include "app/dbstat.h"
#include "lib/targets/database.bpf.h"

OPT(__u64, min_ns);
OPT(bool, by_server);
OPT(bool, by_command);

HISTOGRAM(queries, struct dbstat_key)

TASK_SLOT(struct query);

inline_ struct query *query_slot(bool make)
{
	return current_slot(make);
}

inline_ void query_text(struct query *q, u64 from, u64 bytes)
{
}

inline_ void query_ended(struct query *q, u64 latency)
{
	struct dbstat_key key = {};

	if (latency < min_ns) {
		count(LEDGER_FILTERED);
		return;
	}
	if (by_server)
		key.server = q->server;
	if (by_command)
		key.command = q->command;
	queries_add(&key, latency);
}
