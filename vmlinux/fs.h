/* SPDX-License-Identifier: GPL-2.0-only */
/* Files, directories, mounts, requests of io_uring. */
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
	struct mnt_namespace *mnt_ns;
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
struct file_system_type {
	const char *name;
};

struct super_block {
	unsigned int s_dev;
	struct file_system_type *s_type;
	unsigned long s_flags;
	unsigned long s_magic;
};

enum inode_state_flags_enum {
	I_NEW = 1,
};

struct inode_state_flags {
	enum inode_state_flags_enum __state;
};

struct inode {
	unsigned short i_mode;
	unsigned int i_flags;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	unsigned int i_rdev;
	struct inode_state_flags i_state;
	unsigned int __i_nlink;
	loff_t i_size;
	s64 i_mtime_sec;
	u32 i_mtime_nsec;
	unsigned int i_generation;
	struct file_lock_context *i_flctx;
};

/* include/linux/filelock.h */
struct file_lock_core {
	struct list_head flc_list;
	void *flc_owner;
	u8 flc_type;
	int flc_pid;
};

struct file_lock {
	struct file_lock_core c;
	loff_t fl_start;
	loff_t fl_end;
};

struct file_lock_context {
	struct list_head flc_flock;
	struct list_head flc_posix;
};

/* include/linux/xarray.h */
struct xa_node {
	unsigned char shift;
	void *slots[64];
	unsigned long marks[3];
};

struct xarray {
	void *xa_head;
};

/* include/linux/fs.h */
struct address_space {
	struct inode *host;
	struct xarray i_pages;
	struct rb_root_cached i_mmap;
	unsigned long nrpages;
};

struct file_operations {
	int (*flush)(struct file *file, void *owner);
};

struct file_ra_state {
	unsigned int size;
};

struct file {
	const struct file_operations *f_op;
	unsigned int f_mode;
	unsigned int f_flags;
	struct address_space *f_mapping;
	struct inode *f_inode;
	const struct path f_path;
	long long f_pos;
	void *private_data;
};

struct backing_file {
	const struct path user_path;
};

struct kiocb {
	struct file *ki_filp;
	loff_t ki_pos;
	void *ki_complete;
	int ki_flags;
};

/* include/linux/io_uring_types.h */
struct io_uring_task {
	struct task_struct *task;
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	u64 flags;
	struct io_ring_ctx *ctx;
	struct io_uring_task *tctx;
};

/* include/uapi/linux/io_uring.h */
struct io_uring_cqe {
	__u64 user_data;
	__s32 res;
	__u32 flags;
};

/* include/linux/fdtable.h */
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* include/linux/backing-dev-defs.h, fs/fs-writeback.c: reasons have other numbers elsewhere */
struct backing_dev_info {
	char dev_name[64];
	struct device *owner;
};

struct bdi_writeback {
	struct backing_dev_info *bdi;
};

enum wb_reason {
	WB_REASON_BACKGROUND,
	WB_REASON_VMSCAN,
	WB_REASON_SYNC,
	WB_REASON_PERIODIC,
	WB_REASON_LAPTOP_TIMER,
	WB_REASON_FS_FREE_SPACE,
	WB_REASON_FORKER_THREAD,
	WB_REASON_FOREIGN_FLUSH,
	WB_REASON_DONTCACHE,
};

struct wb_writeback_work {
	long nr_pages;
	enum wb_reason reason;
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
