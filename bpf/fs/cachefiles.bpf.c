// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cachefiles: files in the page cache that processes have open or mapped. */
#include "lib/core/filter.bpf.h"
#include "lib/core/text.bpf.h"
#include "lib/mm/mm.bpf.h"
#include "lib/paths/path.bpf.h"
#include "fs/cachefiles.h"
#include "fs/cache_owner.bpf.h"

#define HUGETLBFS_MAGIC 0x958458f6 /* its pages are not in the page cache */
#define TMPFS_MAGIC 0x01021994     /* nothing writes its pages to a file */
#define RAMFS_MAGIC 0x858458f6

/* Marks of the page cache's tree (XA_MARK_0 and XA_MARK_1). */
#define MARK_DIRTY 0
#define MARK_WRITEBACK 1

/*
 * Files whose path this pass has written, by the address of their cache. If the output is full, the
 * kernel shows an object again, with the same number. A forgotten one gets its path twice.
 */
struct shown {
	u64 pass;
	u64 object;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, u64);
	__type(value, struct shown);
} files SEC(".maps");

struct cachefiles_record {
	struct walked walked;
	struct cachefiles_file head;
	char text[PATH_ROOM];
};

SCRATCH_EACH(records, struct cachefiles_record, 2);

inline_ bool needs_path(u64 mapping, struct bpf_iter_meta *meta)
{
	struct shown now = { .pass = meta->session_id, .object = meta->seq_num };
	struct shown *before = bpf_map_lookup_elem(&files, &mapping);

	if (before && before->pass == now.pass)
		return before->object == now.object;
	bpf_map_update_elem(&files, &mapping, &now, BPF_ANY);
	return true;
}

/*
 * Whether there are dirty pages, and pages that are being written: the root of the tree knows. A
 * file whose only page is its first one has no tree.
 */
inline_ u32 states_of(struct address_space *mapping)
{
	u64 head = (u64)BPF_CORE_READ(mapping, i_pages.xa_head), flags;
	struct xa_node *node = (void *)(head - 2);
	u64 dirty = 0, writeback = 0;

	if ((head & 3) == 2 && head > 4096) {
		dirty = BPF_CORE_READ(node, marks[MARK_DIRTY]);
		writeback = BPF_CORE_READ(node, marks[MARK_WRITEBACK]);
	} else if (head && !(head & 3)) {
		flags = folio_flags((void *)head);
		dirty = flags & (1ULL << bpf_core_enum_value(enum pageflags, PG_dirty));
		writeback = flags & (1ULL << bpf_core_enum_value(enum pageflags, PG_writeback));
	}
	return (dirty ? CACHEFILES_DIRTY : 0) | (writeback ? CACHEFILES_WRITEBACK : 0);
}

inline_ void describe(struct cachefiles_file *f, struct file *file, struct address_space *mapping,
		      struct inode *host)
{
	u64 magic;

	f->mapping = (u64)mapping;
	f->inode = BPF_CORE_READ(host, i_ino);
	f->open_inode = BPF_CORE_READ(file, f_inode, i_ino);
	f->pages = BPF_CORE_READ(mapping, nrpages);
	f->bytes = BPF_CORE_READ(host, i_size);
	f->device = BPF_CORE_READ(host, i_sb, s_dev);
	magic = BPF_CORE_READ(host, i_sb, s_magic);
	if (magic != TMPFS_MAGIC && magic != RAMFS_MAGIC)
		f->flags = states_of(mapping);
	if (BPF_CORE_READ(mapping, i_mmap.rb_root.rb_node))
		f->flags |= CACHEFILES_MAPPED;
	if (!BPF_CORE_READ(host, __i_nlink))
		f->flags |= CACHEFILES_DELETED;
	if (BPF_CORE_READ(file, f_op, flush))
		f->flags |= CACHEFILES_FLUSHES;
	bpf_probe_read_kernel_str(f->fs, sizeof(f->fs), BPF_CORE_READ(host, i_sb, s_type, name));
}

inline_ int show(struct bpf_iter_meta *meta, struct task_struct *task, struct file *file, u32 fd)
{
	struct address_space *mapping;
	struct cachefiles_record *r;
	struct task_struct *leader;
	struct inode *host;
	u32 used = 0, mode;

	if (!meta || !task || !file || !keep_task(task))
		return 0;
	mapping = BPF_CORE_READ(file, f_mapping);
	host = BPF_CORE_READ(mapping, host);
	mode = BPF_CORE_READ(host, i_mode) & MODE_FORMAT;
	if ((mode != MODE_REGULAR && mode != MODE_BLOCK_DEVICE) ||
	    BPF_CORE_READ(host, i_sb, s_magic) == HUGETLBFS_MAGIC)
		return 0;
	r = scratch_at(&records, fd == CACHEFILES_NO_FD);
	if (!r)
		return 0;
	__builtin_memset(&r->head, 0, sizeof(r->head));
	describe(&r->head, file, mapping, host);
	if (!r->head.pages)
		return 0;
	if (mode == MODE_BLOCK_DEVICE) {
		r->head.flags |= CACHEFILES_DEVICE;
		r->head.device = BPF_CORE_READ(host, i_rdev);
	}
	r->head.pid = process_of(task);
	r->head.fd = fd;
	leader = BPF_CORE_READ(task, group_leader);
	bpf_core_read_str(r->head.comm, sizeof(r->head.comm), &leader->comm);
	if (needs_path((u64)mapping, meta)) {
		r->head.flags |= CACHEFILES_HAS_PATH;
		r->head.path_kind = count_cut(file_path_of(&r->walked, r->text, file, task));
		used = walked_bytes(&r->walked);
		find_owner(&r->head, mapping, fd == CACHEFILES_NO_FD);
	}
	r->head.path.at = sizeof(r->head);
	r->head.path.bytes = used;
	r->head.size = sizeof(r->head) + used;
	bpf_seq_write(meta->seq, &r->head, sizeof(r->head) + used);
	return 0;
}

/* Before 5.11 (203d7b054fc7) the kernel shows the files of a process for each thread. */
inline_ bool shares_files(struct task_struct *task)
{
	struct task_struct *first = BPF_CORE_READ(task, group_leader);

	return task->pid != task->tgid && BPF_CORE_READ(first, files) == task->files;
}

SEC("iter/task_file")
int on_file(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;

	return task && !shares_files(task) ? show(ctx->meta, task, ctx->file, ctx->fd) : 0;
}

/* 5.12 (3a7b35b899de). */
SEC("iter/task_vma")
int on_area(struct bpf_iter__task_vma *ctx)
{
	struct vm_area_struct *area = ctx->vma;

	return show(ctx->meta, ctx->task, area ? BPF_CORE_READ(area, vm_file) : NULL,
		    CACHEFILES_NO_FD);
}
