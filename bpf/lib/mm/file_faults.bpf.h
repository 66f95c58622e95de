/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Page faults by file; the tool defines files_only() and faults_by_process().
 *
 * Contexts: the running task, outside of interrupts, in the fault. Counts FILTERED.
 */
#ifndef CORETAP_FILE_FAULTS_BPF_H
#define CORETAP_FILE_FAULTS_BPF_H

#include "lib/aggregate/aggregate.bpf.h"
#include "lib/mm/each_fault.bpf.h"
#include "lib/mm/fault_slots.bpf.h"
#include "lib/mm/fault_starts.bpf.h"
#include "lib/paths/row_text.bpf.h"
#include "lib/mm/file_faults.h"

OPT(bool, writes_only);

/* Constants: do only faults of mapped files count, and are they counted by process? */
inline_ bool files_only(void);
inline_ bool faults_by_process(void);

TABLE(files, struct file_faults_key, struct file_faults_counts)

inline_ bool needs_area(void)
{
	return true;
}

static __noinline int fault_served(struct bpf_perf_event_data *ctx, bool major, struct area *a)
{
	struct file_faults_key key = {};
	struct file_faults_counts *row;
	struct fault *f;

	if (!a || (files_only() && a->id.kind != AREA_FILE))
		return 0;
	if (writes_only) {
		f = fault_slot(false);
		if (!f || !f->write)
			return filtered();
	}
	key.area = a->id;
	if (faults_by_process()) {
		key.pid = current_tgid();
		process_comm(key.comm);
	}
	row = files_row(&key);
	if (!row)
		return 0;
	__sync_fetch_and_add(major ? &row->major : &row->minor, 1);
	if (a->file && !row->named)
		row->named = send_row_path(&key, sizeof(key), (struct file *)a->file);
	return 0;
}

#endif
