/* SPDX-License-Identifier: GPL-2.0-only */
/* BPF itself. */
#pragma once

/* include/uapi/linux/bpf.h: numbers that never change */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_CGROUP_ARRAY = 8,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LRU_PERCPU_HASH = 10,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_HASH_OF_MAPS = 13,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_STACK = 23,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_INODE_STORAGE = 28,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

/* include/uapi/linux/bpf.h */
struct bpf_spin_lock {
	u32 val;
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
};

enum {
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_F_MMAPABLE = 1 << 10,
};

enum {
	BPF_F_USER_STACK = 1 << 8,
	BPF_F_CURRENT_CPU = 0xffffffff,
};

enum {
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1 << 0,
};

enum {
	BPF_RB_NO_WAKEUP = 1 << 0,
	BPF_RB_FORCE_WAKEUP = 1 << 1,
};

enum {
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};

/* Asked for by name (bpf_core_enum_value_exists): does this kernel have that helper? */
enum bpf_func_id {
	BPF_FUNC_task_storage_get = 156,
	BPF_FUNC_get_current_task_btf = 158,
	BPF_FUNC_get_func_ip = 173,
	BPF_FUNC_task_pt_regs = 175,
	BPF_FUNC_find_vma = 180,
};

/* include/uapi/linux/bpf_perf_event.h */
/* What else is in it, registers, depends on the architecture. */
struct bpf_perf_event_data {
	u64 sample_period;
	u64 addr;
};

/* include/linux/bpf.h, kernel/bpf/task_iter.c */
struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

struct bpf_iter__task_vma {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct vm_area_struct *vma;
};
