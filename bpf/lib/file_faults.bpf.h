/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Page faults by file. A tool may define first that only those of mapped
 * files count (FILES_ONLY), and that all are counted by process (BY_PROCESS).
 */
#ifndef CORETAP_FILE_FAULTS_BPF_H
#define CORETAP_FILE_FAULTS_BPF_H

#define FAULT_STARTS
#include "lib/aggregate.bpf.h"
#include "lib/fault.bpf.h"
#include "lib/row_text.bpf.h"
#include "lib/file_faults.h"

#ifndef FILES_ONLY
#define FILES_ONLY false
#endif
#ifndef BY_PROCESS
OPT(bool, by_process);
#define BY_PROCESS by_process
#endif
OPT(bool, writes_only);

TABLE(files, struct file_faults_key, struct file_faults_counts)

static __noinline int served(struct bpf_perf_event_data *ctx, bool major, struct area *a)
{
	struct file_faults_key key = {};
	struct file_faults_counts *row;
	struct fault *f;

	if (!a || (FILES_ONLY && a->id.kind != AREA_FILE))
		return 0;
	if (writes_only) {
		f = current_slot(false);
		if (!f || !f->write) {
			count(LEDGER_FILTERED);
			return 0;
		}
	}
	key.area = a->id;
	if (BY_PROCESS) {
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

#endif
