/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The identity of a file: device, inode number and generation, as inode numbers are reused.
 *
 * Contexts: all.
 */
#ifndef CORETAP_FILE_IDENTITY_BPF_H
#define CORETAP_FILE_IDENTITY_BPF_H

#include "lib/paths/open_file.bpf.h"

#define ANON_INODE_FS_MAGIC 0x09041934
#define BTRFS_SUPER_MAGIC 0x9123683E
#define OVERLAYFS_SUPER_MAGIC 0x794c7630

/*
 * Offsets in bytes in types of file systems, which may be modules: the loader reads them
 * (src/program/file_identity.cpp). No `anon_dev` or `__upperdentry`: the type is not there.
 */
OPT(__u32, btrfs_inode_vfs_inode);
OPT(__u32, btrfs_inode_root);
OPT(__u32, btrfs_root_anon_dev);
OPT(__u32, ovl_inode_vfs_inode);
OPT(__u32, ovl_inode___upperdentry);

/* Inode numbers of btrfs are those of a subvolume, which stat(2) shows as a separate device. */
inline_ void identify_subvolume(struct file_id *id, struct inode *inode)
{
	void *whole = (void *)inode - btrfs_inode_vfs_inode, *root = NULL;
	u32 device = 0; /* not read in place: the verifier would distinguish what follows */

	bpf_probe_read_kernel(&root, sizeof(root), whole + btrfs_inode_root);
	bpf_probe_read_kernel(&device, sizeof(device), root + btrfs_root_anon_dev);
	id->dev = device;
}

/* Inodes of an overlay have no generation, but files below that can be written to do. */
inline_ void identify_upper(struct file_id *id, struct inode *inode)
{
	void *whole = (void *)inode - ovl_inode_vfs_inode;
	struct dentry *upper = NULL;

	bpf_probe_read_kernel(&upper, sizeof(upper), whole + ovl_inode___upperdentry);
	if (upper)
		id->generation = BPF_CORE_READ(upper, d_inode, i_generation);
}

/* Where number, generation and superblock are those of several files. */
inline_ void identify_within(struct file_id *id, struct inode *inode, struct super_block *sb)
{
	if (btrfs_root_anon_dev && FOLLOW(super_block, sb, s_magic) == BTRFS_SUPER_MAGIC)
		identify_subvolume(id, inode);
	if (ovl_inode___upperdentry && !id->generation &&
	    FOLLOW(super_block, sb, s_magic) == OVERLAYFS_SUPER_MAGIC)
		identify_upper(id, inode);
}

inline_ void inode_identity(struct file_id *id, struct inode *inode)
{
	struct super_block *sb = FOLLOW(inode, inode, i_sb);

	id->inode = FOLLOW(inode, inode, i_ino);
	id->generation = FOLLOW(inode, inode, i_generation);
	id->dev = FOLLOW(super_block, sb, s_dev);
	identify_within(id, inode, sb);
}

/* Timers, event counters and the like share one inode; their operations differ by kind. */
inline_ void file_identity(struct file_id *id, struct file *file)
{
	struct inode *inode = FOLLOW(file, file, f_inode);

	inode_identity(id, inode);
	if (!id->generation && FOLLOW(inode, inode, i_sb, s_magic) == ANON_INODE_FS_MAGIC)
		id->generation = (u32)(FOLLOW_NUMBER(file, file, f_op) >> 3);
}

#endif
