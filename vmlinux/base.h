/* SPDX-License-Identifier: GPL-2.0-only */
/* Scalars and what all parts of the kernel share. */
#pragma once

/* include/uapi/asm-generic/int-ll64.h, include/linux/types.h */
typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __s8 s8;
typedef __u8 u8;
typedef __s16 s16;
typedef __u16 u16;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;
typedef __u16 __le16;
typedef __u16 __be16;
typedef __u32 __le32;
typedef __u32 __be32;
typedef __u64 __le64;
typedef __u64 __be64;
typedef __u32 __wsum;

typedef _Bool bool;
enum {
	false,
	true,
};

typedef unsigned long size_t;
typedef long ssize_t;
typedef long long loff_t;
typedef int pid_t;
typedef unsigned int uid_t;
typedef unsigned int gid_t;
typedef unsigned int gfp_t;
typedef u64 sector_t;

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	s64 counter;
} atomic64_t;

typedef atomic64_t atomic_long_t;

struct task_struct;

struct list_head {
	struct list_head *next;
};

/* include/linux/rbtree_types.h */
struct rb_node {
	unsigned long __rb_parent_color;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
};

/* include/linux/mutex_types.h, include/linux/rwsem.h, include/linux/rtmutex.h */
struct mutex {
	atomic_long_t owner;
};

struct rw_semaphore {
	atomic_long_t owner;
};

struct rt_mutex_base {
	struct task_struct *owner;
};

/* include/linux/uidgid_types.h */
typedef struct {
	uid_t val;
} kuid_t;

/* include/linux/ns_common.h */
struct ns_common {
	unsigned int inum;
};
