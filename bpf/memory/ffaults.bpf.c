// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ffaults: page faults by file. */
#define FAULT_STARTS
#include "lib/aggregate.bpf.h"
#include "lib/fault.bpf.h"
#include "lib/row_text.bpf.h"
#include "memory/ffaults.h"

OPT(bool, by_process);
OPT(bool, writes_only);

TABLE(files, struct ffaults_key, struct ffaults_counts)

static __noinline int served(struct bpf_perf_event_data *ctx, bool major, struct area *a)
{
	struct ffaults_key key = {};
	struct ffaults_counts *row;
	struct fault *f;

	if (!a)
		return 0;
	if (writes_only) {
		f = current_slot(false);
		if (!f || !f->write) {
			count(LEDGER_FILTERED);
			return 0;
		}
	}
	key.area = a->id;
	if (by_process) {
		struct task_struct *leader = BPF_CORE_READ(current_task(), group_leader);

		key.pid = current_tgid();
		bpf_core_read_str(key.comm, sizeof(key.comm), &leader->comm);
	}
	row = files_row(&key);
	if (!row)
		return 0;
	__sync_fetch_and_add(major ? &row->major : &row->minor, 1);
	if (a->file && !row->named)
		row->named = send_row_path(&key, sizeof(key), (struct file *)a->file);
	return 0;
}

ON_FAULTS(served, true)
