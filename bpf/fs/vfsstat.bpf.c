// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* vfsstat: operations of the virtual file system. */
#include "lib/aggregate.bpf.h"
#include "lib/filter.bpf.h"
#include "lib/path.bpf.h"
#include "lib/program.bpf.h"
#include "lib/text.bpf.h"
#include "fs/vfsstat.h"

SUMS(operations, struct vfsstat_sums)

#define FMODE_CREATED 0x100000
#define REMOVE_DIR 0x200 /* AT_REMOVEDIR */

#define COUNT(counter)                                   \
	({                                               \
		if (keep_current())                      \
			SUM_ADD(operations, counter, 1); \
		0;                                       \
	})

/* A file that the call made has no other trace in functions that all kernels have. */
inline_ int opened(struct file *file)
{
	if (!keep_current())
		return 0;
	SUM_ADD(operations, opens, 1);
	if (BPF_CORE_READ(file, f_mode) & FMODE_CREATED)
		SUM_ADD(operations, creates, 1);
	return 0;
}

FUNC_ENTRY(in_read, vfs_read, COUNT(reads))
FUNC_ENTRY(in_readv, vfs_readv, COUNT(reads))
FUNC_ENTRY(in_write, vfs_write, COUNT(writes))
FUNC_ENTRY(in_writev, vfs_writev, COUNT(writes))
FUNC_ENTRY(in_fsync, vfs_fsync_range, COUNT(fsyncs))
FUNC_ENTRY(in_open, vfs_open, opened((struct file *)arg[1]))
FUNC_ENTRY(in_unlink, vfs_unlink, COUNT(unlinks))
FUNC_ENTRY(in_mkdir, vfs_mkdir, COUNT(mkdirs))
FUNC_ENTRY(in_rmdir, vfs_rmdir, COUNT(rmdirs))

/* The same by system calls that succeed, where programs may not attach to functions. */
#define CALL_EXIT(name, calls, result)            \
	SEC("tracepoint/syscalls/" calls)         \
	int name(struct exit_ctx *ctx)            \
	{                                         \
		return ctx->ret < 0 ? 0 : result; \
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

/* unlinkat() removes both; a slot is there where a task has called it. */
struct unlinkat {
	u64 rmdir;
};

TASK_SLOT(struct unlinkat);

SEC("tracepoint/syscalls/sys_enter_unlinkat")
int unlinkat_begins(struct enter_ctx *ctx)
{
	struct unlinkat *call = keep_current() ? current_slot(true) : NULL;

	if (call)
		call->rmdir = ctx->args[2] & REMOVE_DIR;
	return 0;
}

#ifdef __TARGET_ARCH_x86
#define CALL_RMDIR 84
#else
#define CALL_RMDIR (-1) /* unlinkat() alone */
#endif

SEC("tracepoint/syscalls/sys_exit_unlink,sys_exit_unlinkat,sys_exit_rmdir")
int remove_call(struct exit_ctx *ctx)
{
	struct unlinkat *call = current_slot(false);
	bool rmdir = (s32)ctx->nr == CALL_RMDIR || (call && call->rmdir);

	if (call)
		call->rmdir = 0;
	if (ctx->ret < 0)
		return 0;
	return rmdir ? COUNT(rmdirs) : COUNT(unlinks);
}
