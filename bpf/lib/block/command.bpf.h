/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Commands of devices whose drivers are modules: from one tracepoint to another,
 * matched by members of both records. The loader sets the offsets of the members.
 *
 * Contexts: interrupts and tasks. Counts UNTRACKED.
 */
#ifndef CORETAP_COMMAND_BPF_H
#define CORETAP_COMMAND_BPF_H

#include "lib/core/filter.bpf.h"

/* Copies a member of the record; the verifier requires constant offsets for loads, not here. */
inline_ void record_read(void *to, u32 size, const void *ctx, u32 at)
{
	bpf_probe_read_kernel(to, size, ctx + at);
}

inline_ u16 record_u16(const void *ctx, u32 at)
{
	u16 value; /* zeroed if it cannot be read */

	record_read(&value, sizeof(value), ctx, at);
	return value;
}

inline_ u32 record_u32(const void *ctx, u32 at)
{
	u32 value;

	record_read(&value, sizeof(value), ctx, at);
	return value;
}

/* command_start() and command_end(); the id type must have no padding. */
#define COMMANDS(id_type, start_type)                                          \
	MAP(HASH, commands, 1, id_type, start_type);                           \
	inline_ void command_start(const id_type *id, const start_type *start) \
	{                                                                      \
		map_put(&commands, id, start);                                 \
	}                                                                      \
	/* False: its start was not seen, or was filtered. */                  \
	inline_ bool command_end(const id_type *id, start_type *start)         \
	{                                                                      \
		start_type *s = bpf_map_lookup_elem(&commands, id);            \
                                                                               \
		if (!s)                                                        \
			return false;                                          \
		*start = *s;                                                   \
		bpf_map_delete_elem(&commands, id);                            \
		return true;                                                   \
	}

#endif
