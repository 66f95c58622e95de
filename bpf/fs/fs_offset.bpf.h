/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where in a file a read or write started. */
#ifndef CORETAP_FS_OFFSET_BPF_H
#define CORETAP_FS_OFFSET_BPF_H

#include "lib/fs/fs_call.bpf.h"

/*
 * File offset where a returned read or write started: from its arguments, which the
 * kernel has advanced if they are pointers, else from the file position after the call.
 */
inline_ u64 fs_offset(struct fs_call *call, struct file *file, struct pt_regs *regs, s64 result)
{
	bool compat = call_is_compat(regs), reads = call->operation == FS_READ;
	u64 args[6], pointer = 0, offset = -1;

	call_arguments(regs, compat, args);
	switch (call->index) {
	case CALL_PREAD64:
	case CALL_PWRITE64:
	case CALL_PREADV:
	case CALL_PWRITEV:
	case CALL_PREADV2:
	case CALL_PWRITEV2:
		offset = args[3];
		break;
	case CALLS_COMPAT + 180: /* pread64, pwrite64 */
	case CALLS_COMPAT + 181:
		offset = args[CALL32_PREAD_AT] | args[CALL32_PREAD_AT + 1] << 32;
		break;
	case CALLS_COMPAT + CALL32_PREADV:
	case CALLS_COMPAT + CALL32_PREADV + 1:
	case CALLS_COMPAT + CALL32_PREADV2:
	case CALLS_COMPAT + CALL32_PREADV2 + 1:
		offset = args[3] | args[4] << 32;
		break;
	case CALL_SENDFILE:
	case CALLS_COMPAT + 187: /* sendfile, sendfile64 */
	case CALLS_COMPAT + 239:
		pointer = reads ? args[2] : 0;
		break;
	case CALL_SPLICE:
	case CALL_COPY_FILE_RANGE:
	case CALLS_COMPAT + CALL32_SPLICE:
	case CALLS_COMPAT + CALL32_COPY_FILE_RANGE:
		pointer = reads ? args[1] : args[3];
		break;
	}
	if (offset != (u64)-1)
		return offset;
	if (pointer) {
		offset = 0;
		bpf_probe_read_user(&offset, call->index == CALLS_COMPAT + 187 ? 4 : 8,
				    (void *)pointer);
	} else {
		offset = BPF_CORE_READ(file, f_pos);
	}
	return result > 0 ? offset - result : offset;
}

#endif
