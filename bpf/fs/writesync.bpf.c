// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* writesync: writes by process, file and kind of synchronization. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/fs/all_files.bpf.h"
#include "lib/fs/file_io_text.bpf.h"
#include "lib/paths/file_identity.bpf.h"
#include "fs/writesync.h"

#define FILE_DSYNC 010000  /* O_DSYNC */
#define FILE_SYNC 04000000 /* additional bit of O_SYNC */
#define CALL_SYNCS_DATA 2  /* RWF_DSYNC */
#define CALL_SYNCS 4       /* RWF_SYNC */
#define MOUNT_SYNC 16      /* SB_SYNCHRONOUS */
#define INODE_SYNC 1       /* S_SYNC, chattr +S */

TABLE(files, struct writesync_key, struct writesync_counts)

inline_ bool ring_timed(void)
{
	return false;
}

static __noinline int add(struct file_io *io, u64 bytes, u32 call_flags)
{
	struct writesync_key key = {};
	struct file_io_owner owner;
	struct writesync_counts *row;
	struct inode *inode;
	struct file *file;
	u32 flags;

	if (!io || !io->file || !io->write)
		return 0;
	file_io_owner(&owner, io);
	file = io->file;
	inode = FOLLOW(file, file, f_inode);
	file_identity(&key.file, file);
	key.pid = owner.pid;
	key.mode = io->mode & MODE_FORMAT;
	__builtin_memcpy(key.comm, owner.comm, COMM_LEN);
	row = FILE_IO_ROW(files, &key, io);
	if (!row)
		return 0;
	flags = FOLLOW(file, file, f_flags);
	if (flags & FILE_SYNC || call_flags & CALL_SYNCS)
		__sync_fetch_and_add(&row->sync, 1);
	else if (flags & FILE_DSYNC || call_flags & CALL_SYNCS_DATA ||
		 FOLLOW(inode, inode, i_flags) & INODE_SYNC ||
		 FOLLOW(inode, inode, i_sb, s_flags) & MOUNT_SYNC)
		__sync_fetch_and_add(&row->dsync, 1);
	else
		__sync_fetch_and_add(&row->regular, 1);
	if (flags & OPEN_DIRECT)
		__sync_fetch_and_add(&row->direct, 1);
	__sync_fetch_and_add(&row->bytes, bytes);
	if (!row->named)
		row->named = send_io_path(&key, sizeof(key), io);
	return 0;
}

/* pwritev2(fd, parts, count, position in two words, flags) */
inline_ u32 flags_of_call(struct pt_regs *regs)
{
	bool compat = call_is_compat(regs);
	u32 index = call_index(call_number(regs), compat);
	u64 args[6];

	if (index != CALL_PWRITEV2 && index != CALLS_COMPAT + CALL32_PREADV2 + 1)
		return 0;
	call_arguments(regs, compat, args);
	return args[5];
}

/* For a read or write: RWF_* flags, and those implied by its file's flags. */
inline_ u32 ring_call_flags(const struct ring_io *io)
{
	struct kiocb *kiocb = ring_kiocb(io->req);

	return FOLLOW(kiocb, kiocb, ki_flags);
}

TRACING(on_ring_end, "tp_btf/io_uring_complete")
{
	struct ring_io ended;
	struct file_io io;

	if (file_ring_io(&io, ctx, &ended) && ended.result >= 0)
		add(&io, ended.result, ring_call_flags(&ended));
	return 0;
}

TRACING(on_exit, "tp_btf/sys_exit")
{
	struct pt_regs *regs = (void *)ctx[0];
	struct file_call_io io;
	s64 bytes = ctx[1];
	u32 flags;

	if (bytes < 0 || !file_call_io(&io, regs, call_number(regs)))
		return 0;
	flags = flags_of_call(regs);
	add(&io.first, bytes, flags);
	add(&io.second, bytes, flags);
	return 0;
}
