// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* mmapfiles: files mapped into memory. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/paths/path.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/paths/row_text.bpf.h"
#include "lib/syscall/syscall.bpf.h"
#include "lib/paths/file_identity.bpf.h"
#include "fs/mmapfiles.h"

OPT(bool, by_process);

TABLE(files, struct mmapfiles_key, struct mmapfiles_counts)

#define PROT_WRITE 2
#define PROT_EXEC 4
#define MAP_SHARED 1

static __noinline int map_file(struct file *file, u64 bytes, u64 prot, u64 flags)
{
	struct mmapfiles_key key = {};
	struct mmapfiles_counts *row;

	if (!file || !keep_current())
		return 0;
	file_identity(&key.file, file);
	key.mode = BPF_CORE_READ(file, f_inode, i_mode);
	if (by_process) {
		key.pid = current_tgid();
		process_comm(key.comm);
	}
	row = files_row(&key);
	if (!row)
		return 0;
	__sync_fetch_and_add(&row->maps, 1);
	__sync_fetch_and_add(&row->bytes, bytes);
	if (prot & PROT_EXEC)
		__sync_fetch_and_add(&row->executable, 1);
	if (prot & PROT_WRITE && flags & MAP_SHARED)
		__sync_fetch_and_add(&row->writing, 1);
	if (!row->named)
		row->named = send_row_path(&key, sizeof(key), file);
	return 0;
}

/* All mappings are created here, including those of a starting program. */
FUNC_ENTRY(on_map, do_mmap, map_file((struct file *)arg[0], arg[2], arg[3], arg[4]))

UNPREEMPTED(on_call, "tracepoint/syscalls/sys_enter_mmap", struct enter_ctx)
{
	if (ctx->args[3] & MAP_ANONYMOUS)
		return 0;
	return map_file(current_file(ctx->args[4]), ctx->args[1], ctx->args[2], ctx->args[3]);
}
