// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* vfsstat: VFS operations. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/syscall/calls.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/paths/path.bpf.h"
#include "lib/core/text.bpf.h"
#include "fs/vfsstat.h"

SUMS(operations, struct vfsstat_sums)

#define REMOVE_DIR 0x200 /* AT_REMOVEDIR */

#define COUNT(counter)                                   \
	({                                               \
		if (keep_current())                      \
			SUM_ADD(operations, counter, 1); \
		0;                                       \
	})

inline_ int opened(struct file *file)
{
	if (!keep_current())
		return 0;
	SUM_ADD(operations, opens, 1);
	if (FOLLOW(file, file, f_mode) & FMODE_CREATED)
		SUM_ADD(operations, creates, 1);
	return 0;
}

/*
 * By successful system calls: functions such as vfs_rmdir are inlined in some
 * kernels, so that programs at their entry see some of the calls, or none.
 */
#define CALL_EXIT(name, calls, result)                                   \
	UNPREEMPTED(name, "tracepoint/syscalls/" calls, struct exit_ctx) \
	{                                                                \
		return ctx->ret < 0 ? 0 : result;                        \
	}

CALL_EXIT(read_call, "sys_exit_read,sys_exit_pread64", COUNT(reads))
CALL_EXIT(readv_call, "sys_exit_readv,sys_exit_preadv,sys_exit_preadv2", COUNT(reads))
CALL_EXIT(write_call, "sys_exit_write,sys_exit_pwrite64", COUNT(writes))
CALL_EXIT(writev_call, "sys_exit_writev,sys_exit_pwritev,sys_exit_pwritev2", COUNT(writes))
CALL_EXIT(fsync_call, "sys_exit_fsync,sys_exit_fdatasync", COUNT(fsyncs))
CALL_EXIT(
	open_call,
	"sys_exit_open,sys_exit_creat,sys_exit_openat,sys_exit_openat2,sys_exit_open_by_handle_at",
	opened(current_file(ctx->ret)))
CALL_EXIT(mkdir_call, "sys_exit_mkdir,sys_exit_mkdirat", COUNT(mkdirs))

/* unlinkat() removes both; only tasks that have called it have a slot. */
struct unlinkat {
	u64 rmdir;
};

TASK_SLOT(struct unlinkat);

UNPREEMPTED(unlinkat_begins, "tracepoint/syscalls/sys_enter_unlinkat", struct enter_ctx)
{
	struct unlinkat *call = wanted_slot();

	if (call)
		call->rmdir = ctx->args[2] & REMOVE_DIR;
	return 0;
}

UNPREEMPTED(remove_call, "tracepoint/syscalls/sys_exit_unlink,sys_exit_unlinkat,sys_exit_rmdir",
	    struct exit_ctx)
{
	struct unlinkat *call = current_slot(false);
	bool rmdir = (s32)ctx->nr == CALL_RMDIR || (call && call->rmdir);

	if (call)
		call->rmdir = 0;
	if (ctx->ret < 0)
		return 0;
	return rmdir ? COUNT(rmdirs) : COUNT(unlinks);
}
