/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory for one record of a thread that is too long for its slot: allocated when needed. Per-CPU
 * memory cannot be used in programs on user functions, where another task may run in between.
 *
 * Contexts: the running task, outside of interrupts, preemptible or not.
 */
#ifndef CORETAP_LONG_RECORD_BPF_H
#define CORETAP_LONG_RECORD_BPF_H

#include "lib/core/emit.bpf.h"

/* The loader uses the map's name. */
#define LONG_RECORDS(record_type)                                                            \
	struct {                                                                             \
		__uint(type, BPF_MAP_TYPE_HASH);                                             \
		__uint(map_flags, 0);                                                        \
		__uint(max_entries, 1);                                                      \
		__type(key, u32);                                                            \
		__type(value, record_type);                                                  \
	} long_records SEC(".maps");                                                         \
	static const record_type no_long_record;                                             \
	/* For the current thread; NULL: none, or the map is full. */                        \
	inline_ record_type *long_record(bool make)                                          \
	{                                                                                    \
		u32 tid = bpf_get_current_pid_tgid();                                        \
		record_type *r = bpf_map_lookup_elem(&long_records, &tid);                   \
                                                                                             \
		if (!r && make &&                                                            \
		    !bpf_map_update_elem(&long_records, &tid, &no_long_record, BPF_NOEXIST)) \
			r = bpf_map_lookup_elem(&long_records, &tid);                        \
		return r;                                                                    \
	}                                                                                    \
	inline_ void long_record_done(void)                                                  \
	{                                                                                    \
		u32 tid = bpf_get_current_pid_tgid();                                        \
                                                                                             \
		bpf_map_delete_elem(&long_records, &tid);                                    \
	}                                                                                    \
	/* A thread may exit while it has a record. */                                       \
	TRACING(long_record_free, "tp_btf/sched_process_exit")                               \
	{                                                                                    \
		long_record_done();                                                          \
		return 0;                                                                    \
	}

#endif
