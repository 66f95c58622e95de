// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* loads: tasks counted by the load averages. */
#include "lib/core/filter.bpf.h"
#include "cpu/iterate.bpf.h"

OPT(__u32, own_tgid); /* the loader, which only runs to read */

struct task_row row;

SEC("iter/task")
int on_task(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	char state = t ? load_state(t) : 0;

	if (!t || !state || task_tgid(t) == own_tgid || !keep_task(t))
		return 0;
	task_row(t, state, &row);
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	return 0;
}
