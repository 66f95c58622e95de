/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Texts of rows of file reads and writes.
 *
 * Contexts: the running task, outside of interrupts, and workers of io_uring, with preemption
 * off.
 */
#ifndef CORETAP_FILE_IO_TEXT_BPF_H
#define CORETAP_FILE_IO_TEXT_BPF_H

#include "lib/fs/file_io.bpf.h"
#include "lib/paths/row_text.bpf.h"

SCRATCH(ring_texts, struct row_text_record);

/* The program at request completion has a separate buffer (SCRATCH). */
inline_ struct row_text_record *file_io_room(const struct file_io *io)
{
	return io->task ? scratch(&ring_texts) : scratch(&row_texts);
}

/*
 * Not inline: the verifier then checks the walk once, instead of once for each state in which a
 * program gets here. Arguments must be numbers, which addresses are after a store in a map.
 */
__noinline int send_io_walk(bool ring)
{
	struct row_text_record *r = ring ? scratch(&ring_texts) : scratch(&row_texts);

	return r && send_keyed_path(r, (void *)r->file, (void *)r->task);
}

inline_ bool send_io_path(const void *key, const u32 bytes, const struct file_io *io)
{
	struct row_text_record *r = file_io_room(io);

	if (!key_row_text(r, key, bytes))
		return false;
	r->file = (u64)io->file;
	r->task = io->task ? (u64)io->task : (u64)current_task();
	return send_io_walk(io->task != NULL);
}

#endif
