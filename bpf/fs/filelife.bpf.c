// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* filelife: files that are removed, and how long they existed. */
#include "lib/file_id.bpf.h"
#include "lib/filter.bpf.h"
#include "lib/program.bpf.h"
#include "lib/removal.bpf.h"
#include "fs/filelife.h"

OPT(__u64, max_age_ns);

#define FMODE_CREATED 0x100000

/* When files were created, of those that exist. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct file_id);
	__type(value, u64);
} born SEC(".maps");

/* A call that removes a name, and the files of `born` that it touches: a rename has two. */
struct life_call {
	struct removal removal;
	struct inode *inode[2];
	struct file_id file[2];
};

TASK_SLOT(struct life_call);

struct life_record {
	struct given_texts texts;
	struct filelife_event event;
	char text[GIVEN_ROOM];
};

SCRATCH(records, struct life_record);

SEC("tracepoint/syscalls/sys_exit_open,sys_exit_creat,sys_exit_openat,sys_exit_openat2")
int on_opened(struct exit_ctx *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct file_id id = {};
	struct file *file;

	if (ctx->ret < 0)
		return 0;
	file = current_file(ctx->ret);
	if (!(FOLLOW(file, file, f_mode) & FMODE_CREATED))
		return 0;
	inode_identity(&id, FOLLOW(file, file, f_inode));
	if (bpf_map_update_elem(&born, &id, &now, BPF_ANY))
		count(LEDGER_UNTRACKED);
	return 0;
}

inline_ int removal_begins(struct removal *r)
{
	struct life_call *c = current_slot(true);

	if (c) {
		c->removal = *r;
		c->inode[0] = c->inode[1] = NULL;
	}
	return 0;
}

inline_ int touched(struct inode *inode)
{
	struct life_call *c = current_slot(false);
	struct file_id id = {};
	u32 i;

	if (!c || !c->removal.start || !inode)
		return 0;
	inode_identity(&id, inode);
	if (!bpf_map_lookup_elem(&born, &id))
		return 0;
	i = c->inode[0] && c->inode[0] != inode;
	c->inode[i & 1] = inode;
	c->file[i & 1] = id;
	return 0;
}

inline_ struct inode *inode_of(u64 dentry)
{
	return FOLLOW(dentry, dentry, d_inode);
}

FUNC_ENTRY(on_remove, security_inode_unlink, touched(inode_of(arg[1])))
FUNC_ENTRY(on_replace, security_inode_rename, touched(inode_of(arg[3])))

/* File systems set the time of the last change of what loses a name. */
ON_TRACEPOINT(on_changed, ctime_ns_xchg, touched((void *)ctx[0]))
ON_TRACEPOINT(on_change_kept, ctime_xchg_skip, touched((void *)ctx[0]))
ON_TRACEPOINT(on_change_set, inode_set_ctime_to_ts, touched((void *)ctx[0]))

/* The memory of an inode may be another one's by now; then it is gone, too. */
inline_ bool has_a_name(struct inode *inode, struct file_id *file)
{
	struct file_id now = {};

	inode_identity(&now, inode);
	return now.inode == file->inode && now.generation == file->generation &&
	       now.dev == file->dev && FOLLOW(inode, inode, __i_nlink);
}

SEC(REMOVAL_EXITS)
int on_removed(struct exit_ctx *ctx)
{
	struct life_call *c = current_slot(false);
	struct filelife_event *e;
	struct life_record *r;
	struct file_id file;
	u64 now, age, *birth;
	bool replaces;

	if (!c || !c->removal.start)
		return 0;
	now = c->removal.start;
	c->removal.start = 0;
	if (ctx->ret)
		return 0;
	for (u32 i = 0; i < 2; i++) {
		if (!c->inode[i])
			return 0;
		file = c->file[i];
		if (!has_a_name(c->inode[i], &file))
			break;
		if (i)
			return 0;
	}
	birth = bpf_map_lookup_elem(&born, &file);
	if (!birth)
		return 0;
	age = since(*birth, now);
	bpf_map_delete_elem(&born, &file);
	if (!keep_current())
		return 0;
	if (max_age_ns && age > max_age_ns) {
		count(LEDGER_FILTERED);
		return 0;
	}
	r = scratch(&records);
	if (!r)
		return 0;
	e = &r->event;
	e->head.time_ns = now;
	e->age_ns = age;
	e->file = file;
	e->call = c->removal.call;
	identify_current(&e->who);
	replaces = c->removal.call >= REMOVAL_RENAME;
	r->texts.used = 0;
	read_given_path(&e->path, &r->texts, r->text, sizeof(*e), 0,
			replaces ? c->removal.to : c->removal.name,
			replaces ? c->removal.to_dfd : c->removal.dfd, ctx->ret);
	emit_copy(e, given_size(&r->texts, sizeof(*e), 1));
	return 0;
}
