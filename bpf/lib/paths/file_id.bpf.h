/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Identity of a file: its inode number and generation, as inode numbers are reused.
 *
 * Contexts: all.
 */
#ifndef CORETAP_FILE_ID_BPF_H
#define CORETAP_FILE_ID_BPF_H

#include "lib/core/follow.bpf.h"

FOLLOWED(inode);

inline_ void inode_identity(struct file_id *id, struct inode *inode)
{
	id->inode = FOLLOW(inode, inode, i_ino);
	id->generation = FOLLOW(inode, inode, i_generation);
	id->dev = FOLLOW(inode, inode, i_sb, s_dev);
}

#endif
