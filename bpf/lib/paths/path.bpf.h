/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths of open files and directories as their process sees them, across mounts.
 *
 * Contexts: tasks; `walked` is in a map, for one program. Counts TRUNCATED.
 */
#ifndef CORETAP_PATH_BPF_H
#define CORETAP_PATH_BPF_H

#include "lib/paths/open_file.bpf.h"

FOLLOWED(dentry);
FOLLOWED(mount);
FOLLOWED(path);
FOLLOWED(task_struct);
FOLLOWED(vfsmount);

#define PATH_BYTES 4096
#define PATH_NAME 256 /* NAME_MAX and a terminator */
#define PATH_ROOM (PATH_BYTES + PATH_NAME)
#define PATH_STEPS 96 /* components and mounts; the verifier also walks each step */

#define MOUNT_INTERNAL 0x4000 /* MNT_INTERNAL: in no mount namespace (pipes, memfd) */

/*
 * Progress of a walk. It must be in a map: the verifier does not track values read back
 * from there, so that all paths through a step end in the same state and do not multiply.
 */
struct walked {
	volatile u32 bytes;
	volatile u32 cut;      /* components towards the root are missing */
	volatile u32 nameless; /* not in a mounted file system */
	u32 pad;
	volatile u64 file; /* its address, read back as a number */
};

inline_ struct mount *mount_of(struct vfsmount *m)
{
	return (void *)((char *)m - bpf_core_field_offset(struct mount, mnt));
}

/*
 * The walk continues by numbers, not pointers: pointers have a type for
 * each path to them, and the verifier would check each step once for each.
 * Separate functions, which it checks once, and not for each step: a quarter of the time.
 */

#define PATH_MOUNT 1 /* instead of a directory */

/* The directory above; PATH_MOUNT: the root of a mount, or of a file system. */
__noinline u64 path_parent(u64 dentry, u64 mount)
{
	u64 parent = FOLLOW_NUMBER(dentry, dentry, d_parent);

	return parent == dentry || FOLLOW_NUMBER(vfsmount, mount, mnt_root) == dentry ? PATH_MOUNT :
											parent;
}

/* The struct mount in which this vfsmount is mounted; 0: in none. */
__noinline u64 path_mount_above(u64 vfsmount)
{
	u64 mount = (u64)mount_of((void *)vfsmount), up = FOLLOW_NUMBER(mount, mount, mnt_parent);

	return up == mount ? 0 : up;
}

__noinline u64 path_mountpoint(u64 vfsmount)
{
	u64 mount = (u64)mount_of((void *)vfsmount);

	return FOLLOW_NUMBER(mount, mount, mnt_mountpoint);
}

__noinline u64 path_name(u64 dentry)
{
	return FOLLOW_NUMBER(dentry, dentry, d_name.name);
}

/*
 * Appends the components of *from (read from the kernel), last first, each with a
 * terminator, to a buffer of PATH_ROOM bytes. It ends at the process's root directory,
 * or at its namespace's. Names may change meanwhile: each is one that the component had.
 */
inline_ void path_walk(struct walked *w, char *to, const struct path *from, const struct path *root)
{
	u64 d = FOLLOW_NUMBER(path, from, dentry), root_dentry = FOLLOW_NUMBER(path, root, dentry),
	    m = FOLLOW_NUMBER(path, from, mnt), root_mount = FOLLOW_NUMBER(path, root, mnt);
	u32 used;

	w->bytes = 0;
	w->cut = false;
	w->nameless = !m || FOLLOW(vfsmount, m, mnt_flags) & MOUNT_INTERNAL;
	if (w->nameless)
		return;
	for (int i = 0; i < PATH_STEPS; i++) {
		u64 parent, up;
		long n;

		if (d == root_dentry && m == root_mount)
			return;
		parent = path_parent(d, m);
		if (parent == PATH_MOUNT) {
			up = path_mount_above(m);
			if (!up)
				return;
			d = path_mountpoint(m);
			m = up + bpf_core_field_offset(struct mount, mnt);
			continue;
		}
		used = w->bytes;
		if (used > PATH_BYTES)
			break;
		n = bpf_probe_read_kernel_str(to + used, PATH_NAME, (void *)path_name(d));
		if (n < 0)
			break;
		w->bytes = used + n;
		d = parent;
	}
	w->cut = true;
}

/* Length of the text after a walk, bounded by its room for the verifier. */
inline_ u32 walked_bytes(const struct walked *w)
{
	u32 bytes = w->bytes;

	return bytes > PATH_ROOM ? 0 : bytes;
}

inline_ struct fs_struct *current_fs(void)
{
	return FOLLOW(task_struct, current_task(), fs);
}

#define AT_CWD (-100) /* as a descriptor: the working directory */

/* The directory that a path of the running task is relative to. */
inline_ const struct path *base_of(s32 dfd)
{
	return dfd == AT_CWD ? &current_fs()->pwd : &current_file(dfd)->f_path;
}

/*
 * The path of an open file as a process with this root sees it (path_walk),
 * or, if it is not in a directory, its name without a terminator.
 */
inline_ enum path_kind path_below(struct walked *w, char *to, const struct path *open,
				  const struct path *root)
{
	struct dentry *d;
	long n;

	path_walk(w, to, open, root);
	if (!w->nameless)
		return w->cut ? PATH_KIND_CUT : PATH_KIND_WHOLE;
	d = FOLLOW(path, open, dentry);
	n = bpf_probe_read_kernel_str(to, PATH_NAME, FOLLOW(dentry, d, d_name.name));
	w->bytes = n > 0 ? n - 1 : 0;
	return PATH_KIND_NAME;
}

/* The path as the running task sees it. */
inline_ enum path_kind path_here(struct walked *w, char *to, const struct path *open)
{
	return path_below(w, to, open, &current_fs()->root);
}

/* FMODE_BACKING is either; the other one is of notifications. */
#define FMODES_BACKING (1 << 24 | 1 << 25)
#define MNT_NS_INTERNAL (-22)

/* A layer of an overlay: a copy of a mount, which is in no namespace. */
inline_ bool is_private(struct vfsmount *m)
{
	return (s64)FOLLOW_NUMBER(mount, mount_of(m), mnt_ns) == MNT_NS_INTERNAL &&
	       !(FOLLOW(vfsmount, m, mnt_flags) & MOUNT_INTERNAL);
}

/*
 * The address of the path by which a file was opened. A file that is mapped from an overlay
 * is the one below, and has it in a separate member since 6.7 (def3ae83da02). A separate
 * function: of two members, the verifier would check the walk for each.
 */
__noinline u64 path_opened(u64 file)
{
	u64 own = file + bpf_core_field_offset(struct file, f_path);

	if (bpf_core_field_exists(struct backing_file, user_path) &&
	    FOLLOW(file, file, f_mode) & FMODES_BACKING &&
	    is_private((void *)FOLLOW_NUMBER(path, own, mnt)))
		return file + bpf_core_field_offset(struct backing_file, user_path);
	return own;
}

inline_ enum path_kind file_path(struct walked *w, char *to, struct file *file)
{
	w->file = (u64)file;
	return path_here(w, to, (void *)path_opened(w->file));
}

/* The path as another task sees it. */
inline_ enum path_kind file_path_of(struct walked *w, char *to, struct file *file,
				    struct task_struct *task)
{
	w->file = (u64)file;
	return path_below(w, to, (void *)path_opened(w->file),
			  &FOLLOW(task_struct, task, fs)->root);
}

/* For an event: counts a truncated path. */
inline_ enum path_kind count_cut(enum path_kind kind)
{
	if (kind == PATH_KIND_CUT)
		count(LEDGER_TRUNCATED);
	return kind;
}

#endif
