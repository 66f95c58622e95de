/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs at the end of each read and write of a file; the tool defines file_io_done().
 *
 * Contexts: the running task, outside of interrupts, and workers of io_uring.
 */
#ifndef CORETAP_EACH_FILE_IO_BPF_H
#define CORETAP_EACH_FILE_IO_BPF_H

#include "lib/fs/file_io.bpf.h"

/* For each file of a system call that succeeded, and of a request of io_uring. */
static __noinline int file_io_done(struct file_io *io, u64 bytes);

inline_ bool ring_timed(void)
{
	return false;
}

TRACING(on_ring_end, "tp_btf/io_uring_complete")
{
	struct ring_io ended;
	struct file_io io;

	if (file_ring_io(&io, ctx, &ended) && ended.result >= 0)
		file_io_done(&io, ended.result);
	return 0;
}

TRACING(on_exit, "tp_btf/sys_exit")
{
	struct pt_regs *regs = (void *)ctx[0];
	struct file_call_io io;
	s64 bytes = ctx[1];

	if (bytes < 0 || !file_call_io(&io, regs, call_number(regs)))
		return 0;
	file_io_done(&io.first, bytes);
	file_io_done(&io.second, bytes);
	return 0;
}

#endif
