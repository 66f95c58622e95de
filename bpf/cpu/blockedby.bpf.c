// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * blockedby: waits, and the owner of the object that the task waited for.
 *
 * An object has an owner now and a history of segments, each with the owner that ended it by
 * waking a waiter. A wait that has ended is divided among the owners in that time.
 */
#include "lib/core/program.bpf.h"
#include "lib/fs/file_lock.bpf.h"
#include "lib/paths/open_file.bpf.h"
#include "lib/sched/lock_owner.bpf.h"
#include "lib/sched/still_waiting.bpf.h"
#include "lib/sched/wait_facts.bpf.h"
#include "lib/stack/waker.bpf.h"
#include "lib/syscall/current_call.bpf.h"
#include "cpu/blockedby.h"
#include "cpu/futex_owner.h"
#include "cpu/iterate.bpf.h"
#include "cpu/lock_flags.h"

OPT(bool, all_waits);
/* Numbers of system calls, from the loader; CALLS: this kernel has no such call. */
OPT_OR(__u32, call_futex, CALLS);
OPT_OR(__u32, call_futex_wait, CALLS);
OPT_OR(__u32, call_futex_wake, CALLS);
OPT_OR(__u32, call_flock, CALLS);
OPT_OR(__u32, call_fcntl, CALLS);

/* Addresses are those of one address space or, of kernel locks and files, of space 0. */
struct object_key {
	u64 space, address;
};

struct object {
	u64 number; /* of the next segment */
	u64 until;  /* end of the last one */
	u64 task;   /* address of the owner; 0: only ids are known */
	u32 heir;   /* process of the last waiter that was woken for it */
	u32 owned;  /* `owner` is known */
	u32 kind;
	u32 proved; /* the task that its word named did wake a waiter */
	struct stack_party owner;
};

struct segment_key {
	struct object_key of;
	u64 number;
};

struct segment {
	u64 until;
	u64 next; /* the row of the owner's own wait */
	struct stack_party owner;
	u64 by;
};

/* A task's wait under way, and its last one. */
struct wait {
	struct off_cpu at;
	u64 woken; /* 0: not woken yet */
	u64 lock;  /* of the kernel, that it contends for */
	u32 lock_flags;
	u32 left; /* flags, known when it left the CPU */
	u32 kind;
	u32 wanted;  /* by the filters */
	u32 tracked; /* may get a row */
	u32 has_waker;
	struct object_key object;
	struct stack_party waker;
	u64 last_row, last_from, last_until, last_ns;
};

OFF_CPU_SLOT(struct wait);

#define PF_EXITING 0x4

#define OBJECTS 16384
#define SEGMENTS 32768
#define OWNERS 64 /* of one wait, at most */

MAP(LRU_HASH, objects, OBJECTS, struct object_key, struct object);
MAP(LRU_HASH, segments, SEGMENTS, struct segment_key, struct segment);
/* Processes (in the initial namespace) that held an object that another task waited for. */
MAP(LRU_HASH, holders, 4096, u32, u8);
MAP(HASH, waits, 1, u64, struct blockedby_row);

/* A wait that has ended, while its rows are made. */
struct work {
	struct blockedby_row row;
	struct object_key object;
	struct object now; /* the object */
	struct stack_party waker;
	u64 from, until;
	u64 before; /* what is before this time is not charged yet */
	u64 best_ns, best_row;
	u32 has_object;
	u32 has_waker;
	u64 refused; /* a part has no row */
};

CPU_SLOTS(works, struct work);
struct work iterator_work; /* other programs on this CPU may interrupt the iterator */

#define IN_SWITCH 0
#define IN_ITERATOR 1

inline_ struct work *work_of(u32 where)
{
	return where == IN_ITERATOR ? &iterator_work : cpu_slot(&works);
}

inline_ bool kernel_lock(u32 kind)
{
	return kind >= BLOCKED_MUTEX && kind <= BLOCKED_RTMUTEX;
}

inline_ bool percpu_lock(u32 kind)
{
	return kind == BLOCKED_PERCPU_READ || kind == BLOCKED_PERCPU_WRITE;
}

inline_ bool file_lock_kind(u32 kind)
{
	return kind >= BLOCKED_FLOCK && kind <= BLOCKED_OFD;
}

/* Those whose owner does not change while a waiter sleeps, unless it wakes one. */
inline_ bool has_history(u32 kind)
{
	return kind != BLOCKED_OTHER && kind != BLOCKED_FUTEX;
}

inline_ void mark_holder(u32 tgid)
{
	u8 one = 1;

	if (!bpf_map_lookup_elem(&holders, &tgid))
		bpf_map_update_elem(&holders, &tgid, &one, BPF_ANY);
}

inline_ bool is_holder(u32 tgid)
{
	return bpf_map_lookup_elem(&holders, &tgid);
}

inline_ void name_party(struct stack_party *p, struct task_struct *t)
{
	p->tgid = process_of(t);
	p->tid = thread_of(t);
	bpf_core_read_str(p->comm, sizeof(p->comm), &t->comm);
}

inline_ u64 owner_of_lock(u32 kind, u64 lock)
{
	if (kind == BLOCKED_MUTEX)
		return mutex_owner(lock);
	if (kind == BLOCKED_RTMUTEX)
		return rt_mutex_owner_of(lock);
	return percpu_lock(kind) ? 0 : rwsem_owner(lock);
}

inline_ u32 kind_of_lock(u32 flags, u64 lock, struct mm_struct *mm)
{
	bool read = flags & LOCK_READ;

	if (flags & LOCK_MUTEX)
		return BLOCKED_MUTEX;
	if (flags & LOCK_RT)
		return BLOCKED_RTMUTEX;
	if (flags & LOCK_PERCPU)
		return read ? BLOCKED_PERCPU_READ : BLOCKED_PERCPU_WRITE;
	if (is_mmap_lock(mm, lock))
		return read ? BLOCKED_MMAP_READ : BLOCKED_MMAP_WRITE;
	return read ? BLOCKED_RWSEM_READ : BLOCKED_RWSEM_WRITE;
}

static __noinline int add_segment(struct object_key *of, struct object *o, struct segment *s)
{
	struct segment_key key = { .of = *of, .number = o->number };

	bpf_map_update_elem(&segments, &key, s, BPF_ANY);
	o->until = s->until;
	o->number = key.number + 1;
	return 0;
}

/* Another owner has been seen: the last one's time ends, at the latest now. */
static __noinline int end_owner(struct object_key *of, struct object *o, u64 now)
{
	struct segment s;

	if (!o->owned)
		return 0;
	__builtin_memset(&s, 0, sizeof(s));
	s.until = now;
	s.owner = o->owner;
	s.by = BLOCKED_BY_OWNER;
	add_segment(of, o, &s);
	o->owned = 0;
	o->task = 0;
	return 0;
}

/* The object that a task is about to wait for; made if need be. */
static __noinline struct object *object_of(struct object_key *of, u32 kind, u64 now)
{
	struct object *o = bpf_map_lookup_elem(&objects, of);
	struct object first;

	if (!o) {
		__builtin_memset(&first, 0, sizeof(first));
		first.number = now; /* not that of a segment of an earlier life */
		first.until = now;
		first.kind = kind;
		bpf_map_update_elem(&objects, of, &first, BPF_NOEXIST);
		o = bpf_map_lookup_elem(&objects, of);
	}
	if (!o)
		count(LEDGER_UNTRACKED);
	return o;
}

/* The task at this address has, or gets, the lock. */
static __noinline int owned_by_task(struct object_key *of, struct object *o, u64 task, u64 now)
{
	struct task_struct *t = (void *)task;
	u32 tgid;

	if (o->owned && o->task == task)
		return 0;
	end_owner(of, o, now);
	if (!task)
		return 0;
	__builtin_memset(&o->owner, 0, sizeof(o->owner));
	name_party(&o->owner, t);
	o->task = task;
	o->owned = 1;
	tgid = BPF_CORE_READ(t, tgid);
	mark_holder(tgid);
	return 0;
}

/* Only ids of the owner are known: of a thread, or of a process. */
static __noinline int owned_by_ids(struct object_key *of, struct object *o, u64 ids, u64 now)
{
	u32 tgid = ids >> 32, tid = ids;

	if (o->owned && o->owner.tgid == tgid && o->owner.tid == tid)
		return 0;
	end_owner(of, o, now);
	if (!ids)
		return 0;
	__builtin_memset(&o->owner, 0, sizeof(o->owner));
	o->owner.tgid = tgid;
	o->owner.tid = tid;
	o->owned = 1;
	if (tgid)
		mark_holder(tgid);
	return 0;
}

static __noinline int waits_for_lock(struct wait *w, u64 now)
{
	struct object *o;

	w->object.space = 0;
	w->object.address = w->lock;
	o = object_of(&w->object, w->kind, now);
	if (o && !percpu_lock(w->kind))
		owned_by_task(&w->object, o, owner_of_lock(w->kind, w->lock), now);
	return 0;
}

/* The owner's thread id as the process sees it; 0: not known. */
static __noinline u32 futex_owner(struct wait *w, u64 address, u32 command, u32 value)
{
	struct futex_words words = {};
	struct futex_owner owner;

	/* A lock may be at the end of mapped memory. */
	if (bpf_probe_read_user(&words, sizeof(words), (void *)address)) {
		__builtin_memset(&words, 0, sizeof(words));
		bpf_probe_read_user(&words.lock, sizeof(words.lock), (void *)address);
	}
	owner = owner_of_futex(command, value, &words);
	w->kind = owner.kind;
	return owner.tid;
}

/* Thread ids in the process's own namespace: by which its memory knows them. */
inline_ u32 own_tid(struct task_struct *t)
{
	struct pid *pid = BPF_CORE_READ(t, thread_pid);
	u32 level = BPF_CORE_READ(pid, level);
	struct upid upid = {};

	if (!level)
		return BPF_CORE_READ(t, pid);
	if (level < PIDNS_LEVELS)
		bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]);
	return upid.nr;
}

#define THREADS 512 /* of a process that are looked at */

/*
 * The address of the thread with this own id in the task's process; 0: there is none. All its
 * threads have their id at the same place of their struct pid. Failed reads give 0.
 */
static __noinline u64 thread_with(u64 task, u32 tid)
{
	struct task_struct *t = (void *)task;
	struct signal_struct *signal = BPF_CORE_READ(t, signal);
	u64 head = (u64)signal + bpf_core_field_offset(signal->thread_head), node = 0, place;
	struct pid *pid = BPF_CORE_READ(t, thread_pid);
	u32 level = BPF_CORE_READ(pid, level), id;

	if (level >= PIDNS_LEVELS)
		return 0;
	place = (u64)&pid->numbers[level].nr - (u64)pid;
	bpf_probe_read_kernel(&node, sizeof(node), (void *)head);
	for (u32 i = 0; i < THREADS && node && node != head; i++) {
		task = node - bpf_core_field_offset(t->thread_node);
		bpf_probe_read_kernel(&pid, sizeof(pid),
				      (void *)(task + bpf_core_field_offset(t->thread_pid)));
		bpf_probe_read_kernel(&id, sizeof(id), (void *)((u64)pid + place));
		if (id == tid)
			return task;
		bpf_probe_read_kernel(&node, sizeof(node), (void *)node);
	}
	return 0;
}

inline_ void futex_at(struct wait *w, struct task_struct *t, u64 address, u32 command, u32 value,
		      bool shared, u64 now)
{
	u32 tid = futex_owner(w, address, command, value);
	struct mm_struct *mm = BPF_CORE_READ(t, mm);
	struct object *o;

	/* Processes that share a futex mostly inherited its mapping, and the place of their stack.
	 */
	w->object.space = shared ? BPF_CORE_READ(mm, start_stack) : (u64)mm;
	w->object.address = address;
	if (!has_history(w->kind))
		return;
	o = object_of(&w->object, w->kind, now);
	if (!o)
		return;
	if (w->kind > o->kind)
		o->kind = w->kind;
	w->kind = o->kind;
	if (tid)
		owned_by_ids(&w->object, o, (u64)(shared ? 0 : BPF_CORE_READ(t, tgid)) << 32 | tid,
			     now);
}

#define F_SETLKW 7
#define F_OFD_SETLKW 38
#define LOCK_SH 1

/* As fcntl(2) has it. */
struct asked_file_lock {
	s16 type, whence;
	u32 pad;
	s64 start, length;
};

static __noinline int waits_for_file(struct wait *w, u64 fd, u64 how, u64 lock, u64 now)
{
	struct held_file_lock wanted = { .last = ~0ULL >> 1, .type = FILE_WRITE_LOCK };
	struct task_struct *t = running_task();
	struct asked_file_lock asked = {};
	struct file *file = running_file(t, (u32)fd);
	bool posix = w->kind != BLOCKED_FLOCK;
	struct object *o;
	struct inode *inode;
	s32 pid;

	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	wanted.owner = (u64)file;
	if (!posix) {
		wanted.type = how & LOCK_SH ? FILE_READ_LOCK : FILE_WRITE_LOCK;
	} else {
		bpf_probe_read_user(&asked, sizeof(asked), (void *)lock);
		wanted.type = asked.type;
		if (w->kind == BLOCKED_FCNTL)
			wanted.owner = (u64)BPF_CORE_READ(t, files);
		if (!asked.whence && asked.length >= 0) {
			wanted.first = asked.start;
			if (asked.length)
				wanted.last = asked.start + asked.length - 1;
		}
	}
	pid = holder_of_file(inode, posix, &wanted);
	w->object.space = w->kind;
	w->object.address = BPF_CORE_READ(inode, i_ino);
	/* Inode numbers are those of a file system. */
	w->object.space |= (u64)BPF_CORE_READ(inode, i_sb, s_dev) << 8;
	o = object_of(&w->object, w->kind, now);
	if (o)
		owned_by_ids(&w->object, o, pid > 0 ? (u64)pid << 32 : 0, now);
	return 0;
}

/* Finds the object that the running task waits for, by its system call. */
static __noinline int waits_in_call(struct wait *w, u64 now)
{
	struct pt_regs *regs = current_call_regs();
	u32 call = current_call_of(regs), command;
	struct task_struct *t = running_task();
	u64 first, second, third;

	if (call >= CALLS_COMPAT)
		return 0;
	if (call != call_futex && call != call_futex_wait && call != call_flock &&
	    call != call_fcntl)
		return 0;
	first = PT_REGS_PARM1_CORE_SYSCALL(regs);
	second = PT_REGS_PARM2_CORE_SYSCALL(regs);
	third = PT_REGS_PARM3_CORE_SYSCALL(regs);
	if (call == call_futex) {
		command = second & FUTEX_COMMAND;
		if (futex_waits(command))
			futex_at(w, t, first, command, third, !(second & FUTEX_PRIVATE), now);
	} else if (call == call_futex_wait) {
		futex_at(w, t, first, FUTEX_WAIT, second,
			 !(PT_REGS_PARM4_CORE_SYSCALL(regs) & FUTEX_PRIVATE), now);
	} else if (call == call_flock) {
		w->kind = BLOCKED_FLOCK;
		waits_for_file(w, first, second, 0, now);
	} else if (second == F_SETLKW || second == F_OFD_SETLKW) {
		w->kind = second == F_SETLKW ? BLOCKED_FCNTL : BLOCKED_OFD;
		waits_for_file(w, first, 0, third, now);
	}
	return 0;
}

inline_ void leaves(u64 *ctx, struct task_struct *t, u32 state, u64 now)
{
	struct wait *w = task_slot_make(t);
	u32 tgid = t->tgid;

	if (!w)
		return;
	w->wanted = leaves_wanted(t, state);
	w->tracked = w->wanted || is_holder(tgid);
	w->woken = 0;
	w->has_waker = 0;
	w->kind = BLOCKED_OTHER;
	w->object.space = w->object.address = 0;
	w->left = flags_of_state(t, state) | (w->lock ? WALL_LOCK : 0);
	if (state & TASK_UNINTERRUPTIBLE && !(state & TASK_NOLOAD))
		w->left |= WALL_UNINTERRUPTIBLE;
	if (w->lock) {
		w->kind = kind_of_lock(w->lock_flags, w->lock, t->mm);
		waits_for_lock(w, now);
	} else if (!(t->flags & PF_KTHREAD)) {
		waits_in_call(w, now);
	}
	if (!w->wanted)
		w->at.start = 0; /* an end that was missed is no loss */
	if (w->tracked)
		leave_cpu(ctx, &w->at, now);
	else
		w->at = (struct off_cpu){ .start = now };
}

/* Has the running task called the kernel to wake waiters of a futex, or does it end? */
inline_ bool wakes_futexes(void)
{
	u32 call = current_call();

	return call == call_futex || call == call_futex_wake ||
	       OF_RUNNING(running_task(), flags) & PF_EXITING;
}

/* Does the running task wake the waiter because it releases the object? Fills in how sure it is. */
static __noinline int releases(struct wait *w, struct object *o)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;

	if (percpu_lock(w->kind)) /* only the writer wakes readers */
		return w->kind == BLOCKED_PERCPU_READ ? BLOCKED_BY_OWNER : BLOCKED_BY_WAKER;
	if (kernel_lock(w->kind)) {
		if (!o->owned)
			return BLOCKED_BY_WAKER;
		return o->task == (u64)bpf_get_current_task() ? BLOCKED_BY_OWNER : 0;
	}
	if (file_lock_kind(w->kind)) {
		/* Others that sleep do not wake up when the first of them gets the lock. */
		if (!o->owned)
			return o->heir == tgid ? BLOCKED_BY_OWNER : BLOCKED_BY_WAKER;
		return o->owner.tgid == tgid ? BLOCKED_BY_OWNER : 0;
	}
	if (!wakes_futexes())
		return 0;
	if (o->owned && o->owner.tid == own_tid(current_task()) &&
	    (!o->owner.tgid || o->owner.tgid == tgid))
		o->proved = 1;
	return o->proved ? BLOCKED_BY_OWNER : BLOCKED_BY_WAKER;
}

/* The row of the running task's last wait, if it covers most of the time since `from`. */
inline_ u64 own_wait(u64 from, u64 now)
{
	struct wait *own = current_slot(false);
	u64 ns;

	if (!own || !own->last_row)
		return 0;
	ns = own->last_from >= from ? own->last_ns :
				      lesser(own->last_ns, since(from, own->last_until));
	return ns * 2 >= since(from, now) ? own->last_row : 0;
}

static __noinline int woken_by_current(struct wait *w, u32 tgid, u64 now)
{
	struct object *o = bpf_map_lookup_elem(&objects, &w->object);
	struct segment s;
	u64 from;
	int by;

	if (!o)
		return 0;
	by = releases(w, o);
	if (!by)
		return 0;
	__builtin_memset(&s, 0, sizeof(s));
	from = o->until > w->at.start ? o->until : w->at.start;
	s.until = now;
	s.owner = w->waker;
	s.by = by;
	s.next = own_wait(from, now);
	add_segment(&w->object, o, &s);
	o->owned = 0;
	o->task = 0;
	o->heir = tgid;
	mark_holder(bpf_get_current_pid_tgid() >> 32);
	return 0;
}

TRACING(on_waking, "tp_btf/sched_waking")
{
	struct task_struct *t = (void *)ctx[0];
	struct wait *w = task_slot(t);
	u64 now;

	if (!w || !w->at.start || w->woken)
		return 0;
	now = bpf_ktime_get_ns();
	w->woken = now;
	if (!w->tracked && !has_history(w->kind))
		return 0;
	party_of_current(ctx, &w->waker);
	w->has_waker = 1;
	if (w->waker.state == STACK_TASK && has_history(w->kind))
		woken_by_current(w, t->tgid, now);
	return 0;
}

/* ---- rows ---- */

inline_ bool same_key(struct blockedby_key *a, struct blockedby_key *b)
{
	u64 *x = (u64 *)a, *y = (u64 *)b, differs = 0;

	for (u32 i = 0; i < sizeof(*a) / 8; i++)
		differs |= x[i] ^ y[i];
	return !differs;
}

inline_ u64 hash_of_key(struct blockedby_key *key)
{
	u64 *word = (u64 *)key, hash = 0;

	for (u32 i = 0; i < sizeof(*key) / 8; i++)
		hash = walk_hash(hash, word[i]);
	return hash ? hash : 1;
}

/* Adds a part of the wait to the row of its key. */
static __noinline int add_part(struct work *k, u64 ns)
{
	u64 id = hash_of_key(&k->row.key);
	struct blockedby_row *row = bpf_map_lookup_elem(&waits, &id);

	if (!row) {
		bpf_map_update_elem(&waits, &id, &k->row, BPF_NOEXIST);
		row = bpf_map_lookup_elem(&waits, &id);
	}
	if (!row || !same_key(&row->key, &k->row.key)) {
		k->refused = 1;
		return 0;
	}
	__sync_fetch_and_add(&row->total_ns, ns);
	__sync_fetch_and_add(&row->count, 1);
	if (ns > row->longest_ns) /* two CPUs may overwrite each other */
		row->longest_ns = ns;
	if (ns > k->best_ns) {
		k->best_ns = ns;
		k->best_row = id;
	}
	return 0;
}

static const struct stack_party no_party;

/* The time in which the object had the owner it has now, if any. */
__noinline int charge_last(u32 where)
{
	struct work *k = work_of(where);
	u64 from;

	if (!k)
		return 0;
	from = k->from;
	if (k->has_object && k->now.until > from)
		from = lesser(k->now.until, k->until);
	k->before = from;
	if (from >= k->until)
		return 0;
	k->row.key.next = 0;
	k->row.key.owner = no_party;
	k->row.key.by = BLOCKED_BY_UNKNOWN;
	if (k->has_object && k->now.owned) {
		k->row.key.owner = k->now.owner;
		k->row.key.by = BLOCKED_BY_OWNER;
	} else if (k->has_waker) {
		k->row.key.owner = k->waker;
		k->row.key.by = BLOCKED_BY_WAKER;
	}
	return add_part(k, k->until - from);
}

/* The segment that is this many back. Nothing is left to charge: returns 1. */
__noinline int charge_segment(u32 where, u32 back)
{
	struct work *k = work_of(where);
	struct segment_key key;
	struct segment *s, *earlier;
	u64 from, until;

	if (!k || k->before <= k->from)
		return 1;
	key.of = k->object;
	key.number = k->now.number - back;
	s = bpf_map_lookup_elem(&segments, &key);
	if (!s)
		return 1;
	key.number--;
	earlier = bpf_map_lookup_elem(&segments, &key);
	from = earlier && earlier->until > k->from ? earlier->until : k->from;
	until = lesser(s->until, k->until);
	k->before = lesser(from, k->before);
	if (from >= until)
		return 0;
	k->row.key.owner = s->owner;
	k->row.key.by = (u32)s->by;
	k->row.key.next = s->next;
	add_part(k, until - from);
	return 0;
}

/* Divides the wait among the owners, from the last to the first. */
static __noinline int charge(u32 where)
{
	struct work *k = work_of(where);

	if (!k)
		return 0;
	charge_last(where);
	for (u32 i = 1; k->has_object && i <= OWNERS; i++) {
		if (charge_segment(where, i))
			break;
	}
	if (k->before > k->from) {
		k->row.key.owner = no_party;
		k->row.key.by = BLOCKED_BY_UNKNOWN;
		k->row.key.next = 0;
		add_part(k, k->before - k->from);
	}
	/* Waits of unwanted tasks have rows for chains only. */
	if (k->refused && k->row.key.wanted)
		count(LEDGER_UNTRACKED);
	return 0;
}

/* The kind without the owner that its words name. */
inline_ u32 certain_kind(u32 kind)
{
	if (kind == BLOCKED_FUTEX_MUTEX)
		return BLOCKED_FUTEX_LOCK;
	return kind == BLOCKED_FUTEX_TID || kind == BLOCKED_JOIN ? BLOCKED_FUTEX : kind;
}

/*
 * An owner that is known by its own thread id only is a thread of the process, or unknown.
 * It is looked for only if it did not prove to be the owner by waking a waiter.
 */
static __noinline int find_thread(struct work *k, struct task_struct *t)
{
	u64 thread = 0;

	if (!k->now.owned || !k->now.owner.tgid)
		return 0;
	if (k->now.until < k->until)
		thread = thread_with((u64)t, k->now.owner.tid);
	if (thread) {
		name_party(&k->now.owner, (void *)thread);
		k->now.proved = 1;
	} else {
		k->now.owned = 0;
	}
	return 0;
}

/* Everything about the wait except its stacks and owners. */
inline_ void describe(struct work *k, struct wait *w, struct task_struct *t, u64 from, u64 until)
{
	struct object *o = NULL;

	__builtin_memset(k, 0, sizeof(*k));
	k->from = from;
	k->until = until;
	k->row.key.witness = w->left | facts_of_wait(t);
	k->row.key.kind = w->kind;
	k->row.key.object = w->object.address;
	k->row.key.wanted = w->wanted;
	if (has_history(w->kind))
		o = bpf_map_lookup_elem(&objects, &w->object);
	if (!o)
		return;
	k->object = w->object;
	k->now = *o;
	k->has_object = 1;
	if (file_lock_kind(w->kind) || kernel_lock(w->kind))
		return;
	find_thread(k, t);
	k->row.key.kind = k->now.proved ? k->now.kind : certain_kind(k->now.kind);
	k->has_object = k->row.key.kind != BLOCKED_FUTEX;
}

/* The wait is over; `until`: when the task was woken. */
inline_ void returned(struct task_struct *t, struct wait *w, u64 from, u64 until)
{
	struct stack *kernel = NULL;
	struct work *k;
	u32 tgid = t->tgid;
	bool shown;

	shown = all_waits || has_history(w->kind) || w->left & WALL_UNINTERRUPTIBLE ||
		(w->has_waker && w->waker.state == STACK_TASK);
	if (w->wanted && (!shown || !wanted_time(since(from, until)))) {
		if (!shown)
			count(LEDGER_FILTERED);
		w->wanted = 0;
	}
	if (!w->wanted && !is_holder(tgid))
		return;
	k = cpu_slot(&works);
	if (!k)
		return;
	describe(k, w, t, from, until);
	if (w->has_waker && (w->waker.state == STACK_TASK || all_waits)) {
		k->waker = w->waker;
		k->has_waker = 1;
	}
	party_off_cpu(&k->row.key.waiter, t, &w->at, &kernel);
	if (kernel && k->row.key.waiter.kernel)
		stack_store(kernel, k->row.key.waiter.kernel);
	charge(IN_SWITCH);
	if (w->last_row == k->best_row && w->last_row) {
		w->last_ns += k->best_ns;
	} else {
		w->last_row = k->best_row;
		w->last_ns = k->best_ns;
		w->last_from = from;
	}
	w->last_until = until;
}

TRACING(on_switch, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 now = bpf_ktime_get_ns(), ns;
	u32 state = left_state(ctx);
	struct wait *w;

	/* For all tasks: a filtered task may be an owner. */
	if (state && prev->pid && !(state & TASK_DEAD))
		leaves(ctx, prev, state, now);
	w = returns_to_cpu(next, now, &ns);
	if (w)
		returned(next, w, now - ns, w->woken ? w->woken : now);
	return 0;
}

/* ---- locks of the kernel ---- */

inline_ int contends(u64 lock, u32 flags)
{
	struct wait *w;

	if (lock_spins(flags))
		return 0;
	w = current_slot(true);
	if (!w)
		return 0;
	w->lock = lock;
	w->lock_flags = flags;
	return 0;
}

inline_ int contended(u64 lock, s32 failed)
{
	struct wait *w = current_slot(false);
	struct object_key key = { .address = lock };
	struct object *o;

	if (!w || w->lock != lock)
		return 0;
	w->lock = 0;
	if (failed)
		return 0;
	o = bpf_map_lookup_elem(&objects, &key);
	if (o && !(w->lock_flags & (LOCK_PERCPU | LOCK_READ)))
		owned_by_task(&key, o, bpf_get_current_task(), bpf_ktime_get_ns());
	return 0;
}

PROGRAM(on_contended, "tp_btf/contention_begin", contends(ctx[0], ctx[1]))
PROGRAM(on_contended_end, "tp_btf/contention_end", contended(ctx[0], ctx[1]))

/* Without those tracepoints (before 5.19, 16edd9b511a1). */
#define WAITS(function, flags)                                               \
	PROGRAM(on_##function, "fentry/" #function, contends(ctx[0], flags)) \
	PROGRAM(on_##function##_return, "fexit/" #function, contended(ctx[0], 0))

KLOCK_WAITS(WAITS)

/* ---- waits under way when tracing ends ---- */

static __noinline int add_open_wait(struct task_struct *t, struct wait *w, u64 from, u64 now)
{
	struct work *k = &iterator_work;

	if (w) {
		describe(k, w, t, from, w->woken ? w->woken : now);
		if (w->woken && w->has_waker) {
			k->waker = w->waker;
			k->has_waker = 1;
		}
	} else {
		__builtin_memset(k, 0, sizeof(*k));
		k->from = from;
		k->until = now;
		k->row.key.witness = flags_of_state(t, task_state(t)) | facts_of_wait(t);
		k->row.key.wanted = 1;
	}
	party_waiting(&k->row.key.waiter, t, w ? &w->at : NULL);
	if (k->row.key.waiter.kernel)
		stack_store(&waiting_stack, k->row.key.waiter.kernel);
	return charge(IN_ITERATOR);
}

inline_ void add_waiting(struct task_struct *t, u64 now)
{
	struct wait *w = task_slot(t);
	u64 from = waits_since(t, w ? &w->at.start : NULL);
	bool shown;

	if (!from || (!(w && w->woken) && is_queued(t)))
		return;
	shown = all_waits || load_state(t) == 'D' || (w && has_history(w->kind));
	if (w && w->wanted && (!shown || !wanted_so_far(since(from, now))))
		w->wanted = 0;
	if (w ? !w->wanted && !is_holder(t->tgid) : !shown)
		return;
	add_open_wait(t, w, from, now);
}

/* ---- blocked tasks, for --now ---- */

OPT(__u32, own_tgid); /* the loader, which only runs to read */

struct blocked_task blocked;

/* enum values of include/linux/hung_task.h: low bits of task_struct.blocker, since 6.16 */
#define BLOCKER_MASK 3UL
#define BLOCKER_MUTEX 0
#define BLOCKER_RWSEM_READER 2
#define BLOCKER_RWSEM_WRITER 3

/* Only debug kernels have it; their blocked_on was no mutex before 6.17. */
struct mutex___debug {
	void *magic;
} __attribute__((preserve_access_index));

/* The lock of the kernel that the task waits for, if the kernel keeps it. */
inline_ void lock_of_blocked(struct task_struct *t, struct blocked_task *b)
{
	struct mutex___debug *debug = NULL;
	u64 blocker = 0, kind;

	if (bpf_core_field_exists(t->blocker))
		blocker = t->blocker;
	kind = blocker & BLOCKER_MASK;
	b->object = blocker & ~BLOCKER_MASK;
	if (b->object && kind == BLOCKER_MUTEX) {
		b->kind = BLOCKED_MUTEX;
	} else if (b->object && kind == BLOCKER_RWSEM_READER) {
		b->kind = kind_of_lock(LOCK_READ, b->object, t->mm);
	} else if (b->object && kind == BLOCKER_RWSEM_WRITER) {
		b->kind = kind_of_lock(LOCK_WRITE, b->object, t->mm);
	} else if (bpf_core_field_exists(t->blocked_on) && !bpf_core_field_exists(debug->magic)) {
		b->object = (u64)t->blocked_on;
		b->kind = b->object ? BLOCKED_MUTEX : BLOCKED_OTHER;
	}
}

inline_ void owner_of_blocked(struct blocked_task *b)
{
	struct task_struct *owner;

	if (!kernel_lock(b->kind))
		return;
	owner = (void *)owner_of_lock(b->kind, b->object);
	if (!owner)
		return;
	b->owner_pid = process_of(owner);
	b->owner_tid = thread_of(owner);
}

SEC("iter/task")
int on_blocked(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct blocked_task *b = &blocked;
	struct pt_regs *regs;
	u32 state;

	if (!t || !t->pid || task_tgid(t) == own_tgid)
		return 0;
	state = task_state(t);
	if (t->on_cpu || is_queued(t) || !state || state & (TASK_DEAD | TASK_NEW))
		return 0;
	stack_of_task(t, &b->stack);
	identify_task(&b->who, t);
	b->in_state_ns = in_state_ns(t);
	b->witness = flags_of_state(t, state) | facts_of_wait(t);
	b->state = load_state(t);
	b->wanted = !filter.on || filter_matches(t);
	b->own_tid = own_tid(t);
	b->own_pid = own_tid(t->group_leader);
	b->object = b->kind = b->owner_pid = b->owner_tid = 0;
	lock_of_blocked(t, b);
	owner_of_blocked(b);
	b->args[0] = b->args[1] = b->args[2] = b->args[3] = 0;
	if (!(t->flags & PF_KTHREAD)) {
		regs = has_task_regs() ? (void *)bpf_task_pt_regs(t) : saved_regs(t);
		b->args[0] = PT_REGS_PARM1_CORE_SYSCALL(regs);
		b->args[1] = PT_REGS_PARM2_CORE_SYSCALL(regs);
		b->args[2] = PT_REGS_PARM3_CORE_SYSCALL(regs);
		b->args[3] = PT_REGS_PARM4_CORE_SYSCALL(regs);
	}
	bpf_seq_write(ctx->meta->seq, b, sizeof(*b));
	return 0;
}
