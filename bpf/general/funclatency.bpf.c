// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* funclatency: duration of functions and system calls. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/targets/each_call.bpf.h"
#include "general/funclatency.h"

OPT(bool, by_target);
OPT(bool, by_process);

HISTOGRAM(latencies, struct funclatency_key)

TRACED_CALLS(struct traced_call, )

inline_ void call_begins(const struct call_place *at, struct traced_call *c)
{
}

inline_ void call_ends(const struct call_place *at, struct traced_call *c, u64 ns)
{
	struct funclatency_key key = {};

	if (by_target)
		key.target = c->id;
	if (by_process)
		key.pid = current_tgid();
	latencies_add(&key, ns);
}
