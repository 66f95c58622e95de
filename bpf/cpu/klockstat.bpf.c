// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* klockstat: kernel locks, by the code that takes them: time waiting for them, or holding them. */
#include "lib/core/cpu.bpf.h"
#include "lib/aggregate/extreme.bpf.h"
#include "lib/core/program.bpf.h"
#include "cpu/lock.bpf.h"
#include "cpu/klockstat.h"

OPT(bool, by_thread);
OPT(bool, by_lock);
OPT(__u64, only_lock);

struct taken {
	u64 start; /* 0: none */
	u64 lock;
	u64 stack;
	u64 flags;
};

/* A wait for a spinlock may be interrupted, and the handler may wait for another one. */
#define SPINS 4

struct spins {
	u64 depth;
	struct taken waits[SPINS];
};

TASK_SLOT(struct taken);
CPU_SLOTS(spins, struct spins);
CPU_TABLE(times, struct klockstat_key, struct klockstat_sums)

/* Held locks, with an entry for each reader. A task may release a lock taken by another. */
struct held_key {
	u64 lock;
	u64 reader;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, 0);
	__uint(max_entries, 1);
	__type(key, struct held_key);
	__type(value, struct taken);
} held SEC(".maps");

inline_ void add(struct taken *t)
{
	u64 ns = since(t->start, bpf_ktime_get_ns());
	struct klockstat_key key = { .stack = t->stack, .flags = t->flags };
	struct klockstat_sums *sums;

	if (by_lock)
		key.lock = t->lock;
	if (by_thread) {
		key.tid = current_tid();
		bpf_get_current_comm(key.comm, sizeof(key.comm));
	}
	sums = times_row(&key);
	if (!sums)
		return;
	/* Atomic: a program at another function may run in the middle of this one. */
	__sync_fetch_and_add(&sums->count, 1);
	__sync_fetch_and_add(&sums->total_ns, ns);
	extreme_add(&sums->longest, ns);
}

inline_ bool wanted(u64 lock)
{
	if (only_lock && lock != only_lock)
		return filtered();
	return keep_current();
}

inline_ void take(void *ctx, bool of_function, struct taken *t, u64 lock, u32 flags)
{
	t->lock = lock;
	t->flags = flags & ~(flags & LOCK_MUTEX ? LOCK_SPINS : 0);
	t->stack = caller_stack(ctx, of_function);
	if (!t->stack)
		count(LEDGER_STACK_FAILED);
	t->start = bpf_ktime_get_ns();
}

/* The wait for this lock on this CPU; ends of inner waits were not seen. */
inline_ struct taken *spin_of(struct spins *s, u64 lock)
{
	for (u32 i = SPINS; i-- > 0;) {
		if (i < s->depth && s->waits[i].lock == lock) {
			s->depth = i;
			return &s->waits[i];
		}
	}
	return NULL;
}

inline_ int waits(void *ctx, bool of_function, u64 lock, u32 flags)
{
	struct spins *s;
	struct taken *t;

	if (!wanted(lock))
		return 0;
	if (!lock_spins(flags)) {
		t = current_slot(true);
		/* A mutex reports a wait twice: when it spins, and when it sleeps. */
		if (!t || (t->start && t->lock == lock))
			return 0;
		if (end_missed(t->start))
			count(LEDGER_UNMATCHED);
		take(ctx, of_function, t, lock, flags);
		return 0;
	}
	s = cpu_slot(&spins);
	if (!s)
		return 0;
	if (s->depth >= SPINS)
		s->depth = 0;
	take(ctx, of_function, &s->waits[s->depth & (SPINS - 1)], lock, flags);
	s->depth++;
	return 0;
}

inline_ int waited(u64 lock)
{
	struct spins *s = cpu_slot(&spins);
	struct taken *t = s ? spin_of(s, lock) : NULL;

	if (!t)
		t = current_slot(false);
	if (!t || !t->start || t->lock != lock)
		return 0;
	add(t);
	t->start = 0;
	return 0;
}

PROGRAM(on_begin, "tp_btf/contention_begin", waits(ctx, false, ctx[0], ctx[1]))
PROGRAM(on_end, "tp_btf/contention_end", waited(ctx[0]))

/* Without those tracepoints (before 5.19, 16edd9b511a1). */
#define WAITS(function, flags)                                                       \
	PROGRAM(on_##function, "fentry/" #function, waits(ctx, true, ctx[0], flags)) \
	PROGRAM(on_##function##_return, "fexit/" #function, waited(ctx[0]))

KLOCK_WAITS(WAITS)

inline_ struct held_key key_of(u64 lock, u32 flags)
{
	return (struct held_key){ lock, flags & LOCK_READ ? (u32)bpf_get_current_pid_tgid() : 0 };
}

inline_ int acquired(void *ctx, bool of_function, u64 lock, u32 flags)
{
	struct held_key key = key_of(lock, flags);
	struct taken t = {};

	if (!wanted(lock))
		return 0;
	take(ctx, of_function, &t, lock, flags);
	return map_put(&held, &key, &t);
}

inline_ int released(u64 lock, u32 flags)
{
	struct held_key key = key_of(lock, flags);
	struct taken *t = bpf_map_lookup_elem(&held, &key);

	if (!t)
		return 0;
	add(t);
	bpf_map_delete_elem(&held, &key);
	return 0;
}

#define TAKES(function, flags, got)                         \
	PROGRAM(on_##function##_return, "fexit/" #function, \
		(got) ? acquired(ctx, true, ctx[0], flags) : 0)

#define RELEASES(function, flags) \
	PROGRAM(on_##function, "fentry/" #function, released(ctx[0], flags))

KLOCK_TAKES(TAKES)
KLOCK_RELEASES(RELEASES)

/* The owner continues as a reader. */
PROGRAM(on_downgrade_write_return, "fexit/downgrade_write", acquired(ctx, true, ctx[0], LOCK_READ))

/* Some kernels pass the cgroup's path as the second argument. */
TP_ARGS(mmap_lock_released);
#define MMAP_ARG(ctx, n) (tp_args_mmap_lock_released >= 3 ? ARG(ctx, n + 1) : ARG(ctx, n))

inline_ u32 mmap_flags(u64 *ctx)
{
	return (u8)MMAP_ARG(ctx, 1) ? LOCK_WRITE : LOCK_READ;
}

TRACING(on_mmap_acquired, "tp_btf/mmap_lock_acquire_returned")
{
	u32 flags = mmap_flags(ctx);

	if (!(u8)MMAP_ARG(ctx, 2))
		return 0;
	if (flags == LOCK_READ) /* with a writer, it is the caller, downgrading */
		released(ctx[0], LOCK_WRITE);
	return acquired(ctx, false, ctx[0], flags);
}

PROGRAM(on_mmap_released, "tp_btf/mmap_lock_released", released(ctx[0], mmap_flags(ctx)))
