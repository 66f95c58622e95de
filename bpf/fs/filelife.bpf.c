// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* filelife: removed files, and their age. */
#include "lib/core/filter.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/paths/file_identity.bpf.h"
#include "fs/current_removal.bpf.h"
#include "fs/filelife.h"

RECORD(filelife_event);

OPT(__u64, max_age_ns);

#define NAME_BYTES 256

/* Creation times of existing files; the oldest are evicted. */
MAP(LRU_HASH, born, 1, struct file_id, u64);

struct life_record {
	struct given_texts texts;
	struct filelife_event event;
	char text[GIVEN_ROOM];
};

enum place {
	IN_CALL,
	IN_DELETE,
	IN_MOVE,
	PLACES,
};

SCRATCH_EACH(records, struct life_record, PLACES);

inline_ int created(struct file *file)
{
	struct file_id id = {};
	u64 now;

	if (!(FOLLOW(file, file, f_mode) & FMODE_CREATED))
		return 0;
	now = bpf_ktime_get_ns();
	inode_identity(&id, FOLLOW(file, file, f_inode));
	return map_put(&born, &id, &now);
}

/* A file that has lost its last name; NULL: filtered, or not known. */
inline_ struct life_record *ended(struct file_id *file, u64 now, enum place place)
{
	u64 *birth = bpf_map_lookup_elem(&born, file), age;
	struct life_record *r;

	if (!birth)
		return NULL;
	age = since(*birth, now);
	bpf_map_delete_elem(&born, file);
	if (!keep_current())
		return NULL;
	if (max_age_ns && age > max_age_ns) {
		count(LEDGER_FILTERED);
		return NULL;
	}
	r = scratch_at(&records, place);
	if (!r)
		return NULL;
	r->event.head.time_ns = now;
	r->event.age_ns = age;
	r->event.file = *file;
	r->texts.used = 0;
	return r;
}

inline_ void show(struct life_record *r, const struct removal *removal, s64 result)
{
	struct filelife_event *e = &r->event;
	bool replaces = removal->call >= REMOVAL_RENAME;

	e->call = removal->call;
	identify_current(&e->who);
	read_given_path(&e->path, &r->texts, r->text, sizeof(*e), 0,
			replaces ? removal->to : removal->name,
			replaces ? removal->to_dfd : removal->dfd, result);
	emit_copy(e, given_size(&r->texts, sizeof(*e), 1));
}

/* Not by a call that removes names: only the name of the path is known. */
inline_ void show_name(struct life_record *r, const u8 *name)
{
	struct filelife_event *e = &r->event;
	s64 n = bpf_probe_read_kernel_str(r->text, NAME_BYTES, name);

	e->call = REMOVAL_OTHER;
	identify_current(&e->who);
	e->path = (struct given_path){ .what = n > 0 ? GIVEN_PATH_TEXT : 0 };
	e->path.text.at = sizeof(*e);
	e->path.text.bytes = n > 0 ? (n - 1) & (NAME_BYTES - 1) : 0;
	emit_copy(e, sizeof(*e) + e->path.text.bytes);
}

/*
 * If functions can be traced: called when the file system has removed a name, while the
 * entry still has its inode. A replaced target of a rename is handled the same way.
 */
inline_ int nameless(u64 dentry, enum place place)
{
	struct inode *inode = FOLLOW(dentry, dentry, d_inode);
	struct removal removal = {};
	struct life_record *r;
	struct file_id id = {};

	if (!inode || FOLLOW(inode, inode, __i_nlink))
		return 0;
	inode_identity(&id, inode);
	r = ended(&id, bpf_ktime_get_ns(), place);
	if (!r)
		return 0;
	if (current_removal(&removal))
		show(r, &removal, 0);
	else
		show_name(r, FOLLOW(dentry, dentry, d_name.name));
	return 0;
}

FUNC_ENTRY(on_created, security_file_open, created((struct file *)arg[0]))
FUNC_ENTRY(on_removed, d_delete, nameless(arg[0], IN_DELETE))
FUNC_ENTRY(on_replaced, d_move, nameless(arg[1], IN_MOVE))

/* A call that removes a name, and the files in `born` that it affects: a rename has two. */
struct life_call {
	struct removal removal;
	struct inode *inode[2];
	struct file_id file[2];
};

TASK_SLOT(struct life_call);

UNPREEMPTED(on_opened,
	    "tracepoint/syscalls/sys_exit_open,sys_exit_creat,sys_exit_openat,sys_exit_openat2",
	    struct exit_ctx)
{
	return ctx->ret < 0 ? 0 : created(current_file(ctx->ret));
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

/* Otherwise: file systems set the change time of an inode that loses a name. */
PROGRAM(on_changed, "tp_btf/ctime_ns_xchg", touched((void *)ctx[0]))
PROGRAM(on_change_kept, "tp_btf/ctime_xchg_skip", touched((void *)ctx[0]))
PROGRAM(on_change_set, "tp_btf/inode_set_ctime_to_ts", touched((void *)ctx[0]))

/* The inode's memory may have been reused for another; then the file is gone, too. */
inline_ bool has_a_name(struct inode *inode, struct file_id *file)
{
	struct file_id now = {};

	inode_identity(&now, inode);
	return now.inode == file->inode && now.generation == file->generation &&
	       now.dev == file->dev && FOLLOW(inode, inode, __i_nlink);
}

UNPREEMPTED(on_call_end, REMOVAL_EXITS, struct exit_ctx)
{
	struct life_call *c = current_slot(false);
	struct life_record *r;
	struct file_id file;
	u64 now;

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
	r = ended(&file, now, IN_CALL);
	if (r)
		show(r, &c->removal, ctx->ret);
	return 0;
}
