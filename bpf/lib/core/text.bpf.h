/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records followed by text of any length: built in a
 * scratch buffer, sent with their actual length.
 *
 * Contexts: user text by the running task, outside of interrupts, preemptible or not; SCRATCH as
 * said there.
 */
#ifndef CORETAP_TEXT_BPF_H
#define CORETAP_TEXT_BPF_H

#include "lib/core/emit.bpf.h"

/* Contexts of a system call's classic tracepoints. */
struct enter_ctx {
	u64 entry, nr, args[6];
};

struct exit_ctx {
	u64 entry, nr;
	s64 ret;
};

#define MAP_ANONYMOUS 0x20 /* of mmap(2) */

/*
 * Per-CPU buffer for a program's record. Use it from one program only: if programs are
 * preemptible (at functions), a program of another task may run in between; the kernel does
 * not run the same program twice on a CPU, except programs on user functions.
 * tests/unit/bpf/audit_test.cpp counts the programs. Remains of older texts are never sent.
 */
#define SCRATCH(name, record_type) SCRATCH_EACH(name, record_type, 1)

/* The same for several programs, each with a separate buffer. */
#define SCRATCH_EACH(name, record_type, programs)        \
	struct {                                         \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); \
		__uint(max_entries, programs);           \
		__type(key, u32);                        \
		__type(value, record_type);              \
	} name SEC(".maps")

inline_ void *scratch_at(void *map, u32 place)
{
	return bpf_map_lookup_elem(map, &place);
}

inline_ void *scratch(void *map)
{
	return scratch_at(map, 0);
}

/* Bytes with the terminator, or < 0. Older kernels (5.10) return 0 for an empty string. */
inline_ s64 read_user_str(char *to, u32 room, const void *from)
{
	s64 n = bpf_probe_read_user_str(to, room, from);

	return n ? n : 1;
}

/*
 * Reads a user string into a buffer of `most` bytes and its terminator. Returns its length
 * without the terminator, at most `most`; < 0: cannot be read now. Sets *cut if it is longer.
 */
inline_ s64 text_user(char *to, const u32 most, const void *from, bool *cut)
{
	s64 n = read_user_str(to, most + 2, from);

	*cut = n == most + 2;
	return *cut ? most : n - 1;
}

#endif
