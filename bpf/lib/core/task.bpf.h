/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tasks: identities as shown to the user, and one record of the tool per task.
 *
 * Contexts: all; TASK_SLOT outside of NMIs. Counts UNTRACKED.
 */
#ifndef CORETAP_TASK_BPF_H
#define CORETAP_TASK_BPF_H

#include "lib/core/coretap.bpf.h"

#define PF_KTHREAD 0x200000

/* The loader's pid namespace; 0 if it is the initial one, which needs no translation. */
OPT(__u32, view_pidns);

#define PIDNS_LEVELS 32 /* MAX_PID_NS_LEVEL */

/* A pid's number in the loader's namespace; 0 if it is not visible there. */
inline_ u32 pid_seen(struct pid *pid)
{
	u32 level = BPF_CORE_READ(pid, level);
	struct upid upid;

	for (u32 i = 0; i < PIDNS_LEVELS; i++) {
		if (i > level)
			break;
		if (bpf_core_read(&upid, sizeof(upid), &pid->numbers[i]))
			break;
		if (BPF_CORE_READ(upid.ns, ns.inum) == view_pidns)
			return upid.nr;
	}
	return 0;
}

/* For a pointer from a BTF tracepoint: plain loads. */
inline_ u32 task_tid(struct task_struct *t)
{
	return view_pidns ? pid_seen(t->thread_pid) : t->pid;
}

inline_ u32 task_tgid(struct task_struct *t)
{
	return view_pidns ? pid_seen(t->group_leader->thread_pid) : t->tgid;
}

/* The process of any task, by address. */
inline_ u32 process_of(struct task_struct *t)
{
	return view_pidns ? pid_seen(BPF_CORE_READ(t, group_leader, thread_pid)) :
			    BPF_CORE_READ(t, tgid);
}

inline_ u32 thread_of(struct task_struct *t)
{
	return view_pidns ? pid_seen(BPF_CORE_READ(t, thread_pid)) : BPF_CORE_READ(t, pid);
}

/* Clears bytes after the terminator, left from an older name: equal names compare equal. */
inline_ u64 cut_at_nul(u64 word)
{
	u64 nul = (word - 0x0101010101010101ULL) & ~word & 0x8080808080808080ULL;

	return nul ? word & ((nul & -nul) - 1) : word;
}

/* Copied as two words, for comparing and hashing. */
inline_ void task_comm(struct task_struct *t, char comm[COMM_LEN])
{
	u64 *from = (u64 *)t->comm, *to = (u64 *)comm;
	u64 first = from[0], cut = cut_at_nul(first);

	to[0] = cut;
	to[1] = cut == first && first >> 56 ? cut_at_nul(from[1]) : 0;
}

/* Read the address by bpf_core_read only. */
inline_ struct task_struct *current_task(void)
{
	return (struct task_struct *)bpf_get_current_task();
}

inline_ u32 current_tid(void)
{
	return view_pidns ? pid_seen(BPF_CORE_READ(current_task(), thread_pid)) :
			    (u32)bpf_get_current_pid_tgid();
}

inline_ u32 current_tgid(void)
{
	return view_pidns ? pid_seen(BPF_CORE_READ(current_task(), group_leader, thread_pid)) :
			    (u32)(bpf_get_current_pid_tgid() >> 32);
}

/* The id of its cgroup; for a pointer from a BTF tracepoint. */
inline_ u64 task_cgroup(struct task_struct *t)
{
	return t->cgroups->dfl_cgrp->kn->id;
}

/* The same for any task, by address. */
inline_ u64 cgroup_of(struct task_struct *t)
{
	return BPF_CORE_READ(t, cgroups, dfl_cgrp, kn, id);
}

/* For a pointer from a BTF tracepoint. */
inline_ void identify_task(struct task_id *id, struct task_struct *t)
{
	id->cgroup = task_cgroup(t);
	id->pid = task_tgid(t);
	id->tid = task_tid(t);
	id->uid = t->cred->uid.val;
	id->known = 1;
	task_comm(t, id->comm);
}

/* The same for any task, by address. */
inline_ void identify_known(struct task_id *id, struct task_struct *t)
{
	*id = (struct task_id){ .known = 1 };
	id->cgroup = cgroup_of(t);
	id->pid = process_of(t);
	id->tid = thread_of(t);
	id->uid = BPF_CORE_READ(t, cred, uid.val);
	bpf_core_read_str(id->comm, sizeof(id->comm), &t->comm);
}

/* bpf_get_current_task_btf came with 5.11 (3ca1032ab7ab). */
inline_ bool has_current_btf(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf);
}

/* The running task, for OF_RUNNING(); one helper call for several uses. */
inline_ struct task_struct *running_task(void)
{
	return has_current_btf() ? bpf_get_current_task_btf() : current_task();
}

#define OF_RUNNING(task, ...) \
	(has_current_btf() ? ___arrow(task, ##__VA_ARGS__) : BPF_CORE_READ(task, ##__VA_ARGS__))

/* One helper call instead of five: with return mitigations, each takes 20 ns and more. */
inline_ void identify_current(struct task_id *id)
{
	if (has_current_btf()) {
		identify_task(id, bpf_get_current_task_btf());
		return;
	}
	id->cgroup = bpf_get_current_cgroup_id();
	id->pid = current_tgid();
	id->tid = current_tid();
	id->uid = (u32)bpf_get_current_uid_gid();
	id->known = 1;
	bpf_get_current_comm(id->comm, sizeof(id->comm));
}

/* Copied as two words, like task_comm(). */
inline_ void current_comm(char comm[COMM_LEN])
{
	if (has_current_btf())
		task_comm(bpf_get_current_task_btf(), comm);
	else
		bpf_get_current_comm(comm, COMM_LEN);
}

/* 5.14 renamed task_struct.state (long) to __state (unsigned int): 2f064a59a11f. */
struct task_struct___old_state {
	volatile long state;
} __attribute__((preserve_access_index));

inline_ u32 task_state(struct task_struct *t)
{
	struct task_struct___old_state *old = (void *)t;

	if (bpf_core_field_exists(t->__state))
		return t->__state;
	return old->state;
}

/* 5.16 moved this member (bcf9033e5449). */
struct task_struct___old_cpu {
	unsigned int cpu;
} __attribute__((preserve_access_index));

inline_ u32 task_cpu(struct task_struct *t)
{
	struct task_struct___old_cpu *old = (void *)t;

	if (bpf_core_field_exists(t->thread_info.cpu))
		return t->thread_info.cpu;
	return old->cpu;
}

/*
 * At sched_switch: the state in which the task leaves the CPU; 0: it is still runnable, as a
 * preempted task is even if its state says otherwise. The field may have changed by then (a
 * wake-up on another CPU); 5.18 passes the state as an argument (fa2c3254d7cf, last since
 * 9c2136be0878).
 */
TP_ARGS(sched_switch);

inline_ u32 left_state(u64 *ctx)
{
	if (ctx[0])
		return 0;
	if (tp_args_sched_switch >= 4)
		return (u32)ARG(ctx, 3);
	return task_state((struct task_struct *)ctx[1]);
}

/*
 * At sched_process_exit: is no other thread of the process left? 6.18 reports whether
 * this is the last; before, several threads that exit together are (process_end.bpf.h).
 */
TP_ARGS(sched_process_exit);

inline_ bool last_thread_exits(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[0];

	if (tp_args_sched_process_exit >= 2)
		return (u8)ARG(ctx, 1);
	return !t->signal->live.counter;
}

/* The name of the running task's group leader. */
inline_ void process_comm(char comm[COMM_LEN])
{
	struct task_struct *leader;

	if (has_current_btf()) {
		task_comm(bpf_get_current_task_btf()->group_leader, comm);
		return;
	}
	leader = BPF_CORE_READ(current_task(), group_leader);
	bpf_core_read_str(comm, COMM_LEN, &leader->comm);
}

/*
 * Task storage for tracing programs came with 5.12 (a10787e6d58c); before, a hash
 * by the task's address, sized by the loader. Its entries are deleted when the
 * task is freed, after its last switch, as its thread id may be reused by then.
 */
inline_ bool has_task_storage(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_storage_get);
}

/* Helpers: 5.15 added the one for registers (dd6e10fbd9fb), 5.11 for the task (3ca1032ab7ab). */
inline_ bool has_task_regs(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs);
}

/* Where the kernel saves the task's user registers; read the address by a helper. */
inline_ struct pt_regs *saved_regs(struct task_struct *t)
{
	return (void *)BPF_CORE_READ(t, stack) + THREAD_BYTES - bpf_core_type_size(struct pt_regs);
}

/* The same of the running task, `t`. */
inline_ struct pt_regs *current_regs(struct task_struct *t)
{
	return has_task_regs() ? (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf()) :
				 saved_regs(t);
}

/* A slot for each object of a kind: local storage of the object, and a hash for older kernels. */
#define SLOT_MAPS(name, storage, hash, key_type, slot_type)                         \
	struct {                                                                    \
		__uint(type, storage);                                              \
		__uint(map_flags, BPF_F_NO_PREALLOC);                               \
		__type(key, int);                                                   \
		__type(value, slot_type);                                           \
	} name SEC(".maps");                                                        \
	struct {                                                                    \
		__uint(type, hash);                                                 \
		__uint(max_entries, 1);                                             \
		__type(key, key_type);                                              \
		__type(value, slot_type);                                           \
	} name##_hash SEC(".maps");                                                 \
	static const slot_type name##_zero;                                         \
	inline_ slot_type *name##_hashed(key_type key, bool make)                   \
	{                                                                           \
		slot_type *s = bpf_map_lookup_elem(&name##_hash, &key);             \
                                                                                    \
		if (s || !make)                                                     \
			return s;                                                   \
		bpf_map_update_elem(&name##_hash, &key, &name##_zero, BPF_NOEXIST); \
		return bpf_map_lookup_elem(&name##_hash, &key);                     \
	}

/* Of lib/core/filter.bpf.h. */
inline_ bool keep_current(void);

#define TASK_SLOT(slot_type)                                                                 \
	SLOT_MAPS(task_slots, BPF_MAP_TYPE_TASK_STORAGE, BPF_MAP_TYPE_HASH, u64, slot_type)  \
	inline_ slot_type *slot_of(struct task_struct *t, u64 address, bool make)            \
	{                                                                                    \
		slot_type *s;                                                                \
                                                                                             \
		if (has_task_storage())                                                      \
			s = bpf_task_storage_get(&task_slots, t, 0,                          \
						 make ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0); \
		else                                                                         \
			s = task_slots_hashed(address, make);                                \
		if (!s && make)                                                              \
			count(LEDGER_UNTRACKED);                                             \
		return s;                                                                    \
	}                                                                                    \
	inline_ slot_type *task_slot(struct task_struct *t)                                  \
	{                                                                                    \
		return slot_of(t, (u64)t, false);                                            \
	}                                                                                    \
	inline_ slot_type *task_slot_make(struct task_struct *t)                             \
	{                                                                                    \
		return slot_of(t, (u64)t, true);                                             \
	}                                                                                    \
	/* The slot of the running task, for programs that do not get it as argument. */     \
	inline_ slot_type *running_slot(struct task_struct *running, bool make)              \
	{                                                                                    \
		return slot_of(running, (u64)running, make);                                 \
	}                                                                                    \
	inline_ slot_type *current_slot(bool make)                                           \
	{                                                                                    \
		return running_slot(running_task(), make);                                   \
	}                                                                                    \
	/* NULL also if the running task is not wanted, which is counted. */                 \
	inline_ slot_type *wanted_slot(void)                                                 \
	{                                                                                    \
		return keep_current() ? current_slot(true) : NULL;                           \
	}                                                                                    \
	TRACING(task_slot_free, "tp_btf/sched_process_free")                                 \
	{                                                                                    \
		u64 address = ctx[0];                                                        \
                                                                                             \
		bpf_map_delete_elem(&task_slots_hash, &address);                             \
		return 0;                                                                    \
	}

#endif
