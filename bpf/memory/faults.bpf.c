// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* faults: page faults by stack, by process, by file. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/mm/each_fault.bpf.h"
#include "lib/mm/fault_slots.bpf.h"
#include "lib/paths/row_text.bpf.h"
#include "lib/stack/cpu_walk.bpf.h"
#include "lib/stack/stack_counts.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "memory/faults.h"

STACK_COUNTS(1)

OPT(bool, by_process);
OPT(bool, by_file);

TABLE(rows, struct faults_key, struct faults_counts)

inline_ void add_row(struct bpf_perf_event_data *ctx, bool major, struct area *a)
{
	struct faults_key key = { .area = a->id, .pid = current_tgid() };
	struct faults_counts *row;

	process_comm(key.comm);
	row = rows_row(&key);
	if (!row)
		return;
	__sync_fetch_and_add(major ? &row->major : &row->minor, ctx->sample_period);
	if (a->file && !row->named)
		row->named = send_row_path(&key, sizeof(key), (struct file *)a->file);
}

inline_ void add_stack(struct bpf_perf_event_data *ctx)
{
	struct stack_row entry = {};
	struct stack_party *p = &entry.party[0];

	p->tgid = p->tid = current_tgid();
	party_name_current(p);
	if (stack_kernel)
		p->kernel = interrupted_stack_of_kernel(ctx);
	if (stack_user)
		p->user = stack_of_user(ctx, 0);
	stack_add_n(&entry, NULL, 0, ctx->sample_period);
}

inline_ bool needs_area(void)
{
	return by_file;
}

static __noinline int fault_served(struct bpf_perf_event_data *ctx, bool major, struct area *a)
{
	if (!a)
		return 0;
	if (by_process || by_file)
		add_row(ctx, major, a);
	else
		add_stack(ctx);
	return 0;
}
