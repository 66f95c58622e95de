// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* pidpersec: new processes and threads. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "cpu/pidpersec.h"

SUMS(forks, struct pidpersec_sums)

/* With CLONE_PARENT, the parent of a new process is not the task that creates it. */
TRACING(on_fork, "tp_btf/sched_process_fork")
{
	struct task_struct *maker = (void *)ctx[0], *child = (void *)ctx[1];

	if (!keep_task(maker))
		return 0;
	if (child->tgid == maker->tgid)
		SUM_ADD(forks, threads, 1);
	else
		SUM_ADD(forks, processes, 1);
	return 0;
}
