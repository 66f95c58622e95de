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

inline_ bool send_io_path(const void *key, const u32 bytes, const struct file_io *io)
{
	return send_row_path_by(file_io_room(io), key, bytes, io->file,
				io->task ? io->task : current_task());
}

#endif
