/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of io_uring with their submission times and file offsets (lib/fs/ring_io.bpf.h).
 *
 * Contexts: tasks and interrupts, where requests are submitted.
 */
#ifndef CORETAP_TIMED_RING_IO_BPF_H
#define CORETAP_TIMED_RING_IO_BPF_H

#include "lib/fs/ring_io.bpf.h"
#include "lib/core/program.bpf.h"

inline_ bool ring_timed(void)
{
	return true;
}

PROGRAM(on_ring_req, "tp_btf/io_uring_submit_req", ring_submitted((void *)ctx[0]))

#endif
