/* SPDX-License-Identifier: GPL-2.0-only */
/* Files, directories, mounts. */
#pragma once

/* include/linux/dcache.h */
struct qstr {
	unsigned int len;
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	const struct qstr d_name;
	struct inode *d_inode;
};

/* include/linux/mount.h, fs/mount.h */
struct vfsmount {
	struct dentry *mnt_root;
	int mnt_flags;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

/* include/linux/path.h, include/linux/fs_struct.h */
struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

/* fs/namei.c */
struct nameidata {
	struct path path;
	struct qstr last;
};

/* include/linux/fs.h */
struct super_block {
	unsigned int s_dev;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	unsigned int __i_nlink;
	unsigned int i_generation;
};

struct file_ra_state {
	unsigned int size;
};

struct file {
	unsigned int f_mode;
	struct address_space *f_mapping;
	struct inode *f_inode;
	const struct path f_path;
};

/* include/linux/fdtable.h */
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* include/linux/binfmts.h */
struct linux_binprm {
	const char *filename;
};

/* include/uapi/linux/openat2.h: read from the process, whole */
struct open_how {
	__u64 flags;
	__u64 mode;
	__u64 resolve;
};
