// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* exitsnoop: exiting processes or threads. */
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/process_end.bpf.h"
#include "cpu/exitsnoop.h"

RECORD(exitsnoop_event);

OPT(bool, failed_only);
OPT(bool, threaded);

#define SIGNAL_GROUP_EXIT 4

/* Status for the parent: of exit_group() or a signal,
 * else of the first thread, whenever that ended. */
inline_ u32 process_code(struct task_struct *t)
{
	if (t->signal->flags & SIGNAL_GROUP_EXIT)
		return t->signal->group_exit_code;
	return t->group_leader->exit_code;
}

TRACING(on_exit, "tp_btf/sched_process_exit")
{
	struct task_struct *t = (void *)ctx[0], *shown;
	bool ended = process_ends(ctx);
	struct exitsnoop_event *e;
	u32 code;

	if (!threaded && !ended)
		return 0;
	shown = threaded ? t : t->group_leader;
	if (!keep_task(shown))
		return 0;
	code = threaded ? t->exit_code : process_code(t);
	if (failed_only && !code)
		return filtered();
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->age_ns = since(shown->start_time, e->head.time_ns);
	e->code = code;
	e->ended = ended;
	e->ppid = process_of(shown->real_parent);
	if (ended)
		e->max_rss = t->signal->maxrss;
	identify_task(&e->who, shown);
	return emit_end(e);
}
