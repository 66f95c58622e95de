// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* writeback: when and why dirty pages are written back, how many and for how long. */
#include "lib/block/disk.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/aggregate/extreme.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/program.bpf.h"
#include "fs/writeback.h"

RECORD(writeback_event);

OPT(__u32, wanted_reasons);
OPT(__u64, min_ns);

/* Work queued for a flusher, with its requester. Filtered work is not in the map. */
MAP(LRU_HASH, askers, 1024, u64, struct task_id);

/* A flusher's current work: written in passes, each with a tracepoint. */
struct run {
	struct task_id who;
	u64 wb, work;
	u64 start, end; /* start 0: none */
	s64 first, left;
	u32 reason, pad;
};

TASK_SLOT(struct run);

#define IS(name, word)                                                      \
	(bpf_core_enum_value_exists(enum wb_reason, WB_REASON_##name) &&    \
	 reason == bpf_core_enum_value(enum wb_reason, WB_REASON_##name) && \
	 wanted_reasons & 1 << WRITEBACK_##name) ||

inline_ bool keep_run(struct run *r, u32 disk, u64 ns)
{
	u32 reason = r->reason;

	if ((!filter.on || r->who.known) && wanted_disk(disk) && ns >= min_ns &&
	    (!wanted_reasons || WRITEBACK_REASONS(IS) false))
		return true;
	return filtered();
}

/* The end of a work has no event: it is assumed when something else starts. */
static __noinline int end_run(void)
{
	struct run *r = current_slot(false);
	struct backing_dev_info *bdi;
	struct writeback_event *e;
	struct bdi_writeback *wb;
	struct device *owner;
	u32 disk;
	u64 ns;

	if (!r || !r->start)
		return 0;
	ns = since(r->start, r->end);
	r->start = 0;
	wb = (void *)r->wb;
	bdi = BPF_CORE_READ(wb, bdi);
	owner = BPF_CORE_READ(bdi, owner);
	disk = owner ? BPF_CORE_READ(owner, devt) : 0;
	e = keep_run(r, disk, ns) ? emit_begin(sizeof(*e)) : NULL;
	if (e) {
		e->head.time_ns = r->end;
		e->who = r->who;
		e->pages = r->first - r->left;
		e->latency_ns = ns;
		e->disk = disk;
		e->reason = r->reason;
		bpf_core_read_str(e->device, sizeof(e->device), &bdi->dev_name);
		emit_end(e);
	}
	r->who.known = 0;
	return 0;
}

TRACING(on_queue, "tp_btf/writeback_queue")
{
	u64 work = ctx[1];
	struct task_id who = {};

	if (filter.on && !filter_matches(current_task())) {
		bpf_map_delete_elem(&askers, &work);
		return 0;
	}
	identify_current(&who);
	return map_put(&askers, &work, &who);
}

TRACING(on_exec, "tp_btf/writeback_exec")
{
	struct task_id *who;
	struct run *r;
	u64 work = ctx[1];

	end_run();
	r = current_slot(true);
	if (!r)
		return 0;
	r->work = work;
	r->who.known = 0;
	who = bpf_map_lookup_elem(&askers, &work);
	if (who) {
		r->who = *who;
		bpf_map_delete_elem(&askers, &work);
	}
	return 0;
}

TRACING(on_start, "tp_btf/writeback_start")
{
	struct wb_writeback_work *work = (void *)ctx[1];
	struct run *r = current_slot(true);

	if (!r)
		return 0;
	if (r->start && r->wb == ctx[0] && r->work == (u64)work && r->reason == work->reason &&
	    r->left == work->nr_pages)
		return 0; /* the next pass */
	end_run();
	if (r->work != (u64)work)
		r->who.known = 0;
	r->wb = ctx[0];
	r->work = (u64)work;
	r->reason = work->reason;
	r->first = work->nr_pages;
	r->left = r->first;
	r->start = bpf_ktime_get_ns();
	r->end = r->start;
	return 0;
}

TRACING(on_written, "tp_btf/writeback_written")
{
	struct wb_writeback_work *work = (void *)ctx[1];
	struct run *r = current_slot(false);

	if (r && r->start) {
		r->left = work->nr_pages;
		r->end = bpf_ktime_get_ns();
	}
	return 0;
}

PROGRAM(on_done, "tp_btf/writeback_pages_written", end_run())

#define NSEC_PER_MSEC 1000000ULL

CPU_TABLE(throttled, struct throttle_key, struct throttle_sums)

/* The device number of a disk named "MAJOR:MINOR"; 0: not a disk. */
inline_ u32 disk_of_name(const char *name)
{
	u32 major = 0, number = 0;
	bool colon = false;

	if (name[0] == '0') /* of a file system without a disk */
		return 0;
#pragma unroll
	for (int i = 0; i < 12; i++) {
		char c = name[i];

		if (!c)
			break;
		if (c == ':') {
			colon = true;
			major = number;
			number = 0;
		} else if (c >= '0' && c <= '9') {
			number = number * 10 + c - '0';
		} else {
			return 0;
		}
	}
	return colon ? major << 20 | number : 0;
}

/*
 * The kernel makes a task sleep that dirties pages too fast. The tracepoint's argument for the
 * time is in jiffies, whose length is in no type; its record has milliseconds. The record also
 * has these fields in all kernels, while the number of arguments differs: 12 in 6.12, 8 in 6.18.
 */
SEC("tracepoint/writeback/balance_dirty_pages")
int on_throttle(struct trace_event_raw_balance_dirty_pages *ctx)
{
	struct throttle_key key = {};
	struct throttle_sums *sums;
	s64 ms = ctx->pause;
	u64 ns;

	if (tracing_stopped || ms <= 0) /* the task does not sleep */
		return 0;
	bpf_core_read_str(key.device, sizeof(key.device), &ctx->bdi);
	key.disk = disk_of_name(key.device);
	if (key.disk)
		__builtin_memset(key.device, 0, sizeof(key.device));
	if (filter_disk_on && key.disk != filter_disk)
		return filtered();
	if (!keep_current())
		return 0;
	key.pid = current_tgid();
	process_comm(key.comm);
	sums = throttled_row(&key);
	if (!sums)
		return 0;
	ns = ms * NSEC_PER_MSEC;
	sums->sleeps++;
	sums->total_ns += ns;
	extreme_add(&sums->longest, ns);
	return 0;
}
