// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* deadlock: orders in which the threads of a process take its mutexes. */
#include "lib/stack/task_walk.bpf.h"
#include "lib/core/bits.bpf.h"
#include "lib/targets/call.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "app/deadlock.h"

struct held {
	u64 address;
	u64 stack;
	u32 life;
	u32 depth; /* of a recursive mutex; 0: the slot is free */
};

struct locks {
	struct call call; /* of a function that takes a mutex */
	u64 wanted;       /* the mutex being taken */
	u64 stack;
	u64 creation; /* stack of its pthread_create call */
	u32 life;
	u32 how;
	struct held held[DEADLOCK_HELD];
};

TASK_SLOT(struct locks);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, 0);
	__uint(max_entries, 1);
	__type(key, struct deadlock_order);
	__type(value, struct deadlock_seen);
} orders SEC(".maps");

/* How often the mutex at this address was replaced by another; life: 0. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, 0);
	__uint(max_entries, 1);
	__type(key, struct deadlock_mutex);
	__type(value, u32);
} lives SEC(".maps");

/* With --free: addresses in a page that were used as mutexes; life: 0. */
#define PAGE_BYTES 4096
#define PAGE_WORDS (PAGE_BYTES / 8 / WORD_BITS)
#define FREED_PAGES 64 /* maximum number of pages of one block */

OPT(bool, frees);

struct page_mutexes {
	u64 taken[PAGE_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, 0);
	__uint(max_entries, 1);
	__type(key, struct deadlock_mutex);
	__type(value, struct page_mutexes);
} pages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, 0);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct deadlock_creator);
} creators SEC(".maps");

enum how {
	WAITS,
	WAITS_TIMED,
	TRIES,
	WAITS_FOR_CONDITION, /* the mutex is released meanwhile, and taken again */
};

#define EPERM 1
#define EINVAL 22
#define EOWNERDEAD 130

inline_ u32 current_owner(void)
{
	return bpf_get_current_pid_tgid() >> 32;
}

inline_ u32 life_of(u64 address)
{
	struct deadlock_mutex key = { .address = address, .owner = current_owner() };
	u32 *life = bpf_map_lookup_elem(&lives, &key);

	return life ? *life : 0;
}

inline_ struct held *held_by(struct locks *l, u64 address)
{
	for (u32 i = 0; i < DEADLOCK_HELD; i++)
		if (l->held[i].depth && l->held[i].address == address)
			return &l->held[i];
	return NULL;
}

/* Mutexes held besides the two of an order, for its first occurrence. */
inline_ void note_guards(struct locks *l, struct deadlock_seen *seen, u64 first)
{
	u32 n = 0;

	for (u32 i = 0; i < DEADLOCK_HELD; i++) {
		if (!l->held[i].depth || l->held[i].address == first)
			continue;
		barrier_var(n);
		if (n >= DEADLOCK_GUARDS)
			return;
		seen->guards[n++] = l->held[i].address;
	}
}

inline_ void drop_guards(struct locks *l, struct deadlock_seen *seen)
{
	for (u32 i = 0; i < DEADLOCK_GUARDS; i++)
		if (seen->guards[i] && !held_by(l, seen->guards[i]))
			seen->guards[i] = 0;
}

/*
 * Records that the wanted mutex is taken while the one in this
 * slot is held. A separate function, as the verifier needs it.
 */
__noinline int note_order(u32 at)
{
	struct locks *l = current_slot(false);
	struct deadlock_order order = {};
	struct deadlock_seen *seen, new = {};
	struct held *h;

	if (!l || at >= DEADLOCK_HELD)
		return 0;
	h = &l->held[at];
	order.first.address = h->address;
	order.first.life = h->life;
	order.first.owner = order.second.owner = current_owner();
	order.second.address = l->wanted;
	order.second.life = l->life;
	seen = bpf_map_lookup_elem(&orders, &order);
	if (!seen) {
		new.time_ns = bpf_ktime_get_ns();
		new.stack_first = h->stack;
		new.stack_second = l->stack;
		new.pid = current_tgid();
		new.tid = current_tid();
		new.flags = l->how == WAITS_TIMED ? DEADLOCK_TIMED : 0;
		bpf_get_current_comm(new.comm, sizeof(new.comm));
		note_guards(l, &new, h->address);
		if (!bpf_map_update_elem(&orders, &order, &new, BPF_NOEXIST))
			return 0;
		seen = bpf_map_lookup_elem(&orders, &order);
	}
	if (!seen)
		return counted(LEDGER_UNTRACKED);
	if (seen->tid != current_tid())
		seen->flags |= DEADLOCK_SEVERAL;
	if (l->how != WAITS_TIMED)
		seen->flags &= ~DEADLOCK_TIMED;
	drop_guards(l, seen);
	return 0;
}

inline_ void release(struct locks *l, u64 address)
{
	struct held *h = held_by(l, address);

	if (h)
		h->depth--;
}

static const struct page_mutexes no_mutexes;

/* Not atomic, as 5.10 has no such instruction: a lost bit is set at the next lock. */
inline_ void note_page(u64 address)
{
	struct deadlock_mutex key = { .address = address & ~(PAGE_BYTES - 1ULL),
				      .owner = current_owner() };
	u32 slot = address % PAGE_BYTES / 8, word = slot / 64;
	u64 bit = 1ULL << (slot & 63);
	struct page_mutexes *p = map_row(&pages, &key, &no_mutexes);

	barrier_var(word);
	word &= PAGE_WORDS - 1;
	if (p && !(p->taken[word] & bit))
		p->taken[word] |= bit;
}

static __noinline int wants(struct pt_regs *ctx, u64 address, enum how how)
{
	struct locks *l;

	if (!address || !keep_current())
		return 0;
	l = current_slot(true);
	if (!l || !call_begin(&l->call, ctx))
		return 0;
	if (frees)
		note_page(address);
	l->wanted = address;
	l->how = how;
	l->life = life_of(address);
	if (how == WAITS_FOR_CONDITION)
		release(l, address);
	if (held_by(l, address))
		return 0;
	l->stack = stack_of_user(ctx, l->stack);
	if (!l->stack)
		count(LEDGER_STACK_FAILED);
	if (how == TRIES)
		return 0; /* trylock does not wait */
	for (u32 i = 0; i < DEADLOCK_HELD; i++)
		if (l->held[i].depth)
			note_order(i);
	return 0;
}

static __noinline int got(struct pt_regs *ctx)
{
	struct locks *l = current_slot(false);
	s32 result = PT_REGS_RC(ctx);
	struct held *h;

	if (!l || !call_end(&l->call, ctx))
		return 0;
	l->call.start = 0;
	if (l->how == WAITS_FOR_CONDITION ? result == EPERM || result == EINVAL :
					    result && result != EOWNERDEAD)
		return 0;
	h = held_by(l, l->wanted);
	if (h) {
		h->depth++;
		return 0;
	}
	for (u32 i = 0; i < DEADLOCK_HELD; i++) {
		h = &l->held[i];
		if (h->depth)
			continue;
		h->address = l->wanted;
		h->life = l->life;
		h->stack = l->stack;
		h->depth = 1;
		return 0;
	}
	return counted(LEDGER_UNTRACKED);
}

static __noinline int unlocks(u64 address)
{
	struct locks *l = current_slot(false);

	if (l)
		release(l, address);
	return 0;
}

/* The address is reused: the next mutex here has a new generation. */
__noinline int end_life(u64 address)
{
	struct deadlock_mutex key = { .address = address, .owner = current_owner() };
	u32 *life, first = 1;

	life = bpf_map_lookup_elem(&lives, &key);
	if (life)
		__sync_fetch_and_add(life, 1);
	else
		map_put(&lives, &key, &first);
	return 0;
}

inline_ int reborn(u64 address)
{
	return keep_current() ? end_life(address) : 0;
}

/* Calls end_life() for all mutexes of a page from address `from`, before `to`. */
__noinline int end_page(u64 page, u64 from, u64 to)
{
	struct deadlock_mutex key = { .address = page, .owner = current_owner() };
	struct page_mutexes *p = bpf_map_lookup_elem(&pages, &key);
	u64 first, end;

	if (!p)
		return 0;
	/* Indexes of words in the page, which are bit numbers. */
	first = from > page ? (from - page + 7) / 8 : 0;
	end = to > page ? (to - page + 7) / 8 : 0;
	if (first >= end)
		return 0;
	for (u32 word = 0; word < PAGE_WORDS; word++) {
		u64 mask, ended;

		if (word < first / WORD_BITS || word > (end - 1) / WORD_BITS)
			continue;
		mask = bits_of_word(word, first, end - 1);
		/* One mask instead of bit by bit: the verifier
		 * of 5.10 checks each combination of bits. */
		ended = p->taken[word] & mask;
		if (!ended)
			continue;
		p->taken[word] &= ~mask;
		for (u32 bit = 0; bit < 64; bit++, ended >>= 1)
			if (ended & 1)
				end_life(page + (word * WORD_BITS + bit) * 8);
	}
	return 0;
}

/* glibc stores the size of a block before it, with three flag bits. */
static __noinline int freed(u64 block)
{
	u64 bytes = 0, page = block & ~(PAGE_BYTES - 1ULL);

	if (!block || !keep_current() ||
	    bpf_probe_read_user(&bytes, sizeof(bytes), (void *)block - sizeof(bytes)))
		return 0;
	bytes &= ~7ULL;
	for (u32 i = 0; i < FREED_PAGES; i++, page += PAGE_BYTES) {
		if (page >= block + bytes)
			return 0;
		end_page(page, block, block + bytes);
	}
	return 0;
}

/* The C library's code around clone() has no unwind information. */
static __noinline int creates(struct pt_regs *ctx)
{
	struct locks *l = wanted_slot();

	if (l)
		l->creation = stack_of_user(ctx, l->creation);
	return 0;
}

#define P1 PT_REGS_PARM1(ctx)
#define P2 PT_REGS_PARM2(ctx)

ON_USER_FUNCTION("uretprobe/same", on_return, got(ctx))

#define TAKES(function, n, how) \
	ON_USER_FUNCTION("uprobe/libc:" #function "/" #n, on_##function, wants(ctx, P##n, how))

TAKES(pthread_mutex_lock, 1, WAITS)
TAKES(pthread_mutex_trylock, 1, TRIES)
TAKES(pthread_mutex_timedlock, 1, WAITS_TIMED)
TAKES(pthread_mutex_clocklock, 1, WAITS_TIMED)
TAKES(pthread_cond_wait, 2, WAITS_FOR_CONDITION)
TAKES(pthread_cond_timedwait, 2, WAITS_FOR_CONDITION)
TAKES(pthread_cond_clockwait, 2, WAITS_FOR_CONDITION)
ON_USER_FUNCTION("uprobe/libc:pthread_mutex_unlock/1", on_unlock, unlocks(P1))
ON_USER_FUNCTION("uprobe/libc:pthread_mutex_init/1", on_init, reborn(P1))
ON_USER_FUNCTION("uprobe/libc:pthread_mutex_destroy/1", on_destroy, reborn(P1))

ON_USER_FUNCTION("uprobe/libc:pthread_create/0", on_create, creates(ctx))
ON_USER_FUNCTION("uprobe/libc:free/1", on_free, freed(P1))

TRACING(on_new_task, "tp_btf/task_newtask")
{
	struct task_struct *task = (void *)ctx[0];
	struct deadlock_creator creator = {};
	struct locks *l = current_slot(false);
	u32 tid = task_tid(task);

	if ((u32)task->tgid != current_owner() || !keep_current())
		return 0; /* a process, not a thread */
	creator.stack = l && l->creation ? l->creation : stack_of_user(ctx, 0);
	creator.pid = current_tgid();
	creator.tid = current_tid();
	bpf_get_current_comm(creator.comm, sizeof(creator.comm));
	return map_put(&creators, &tid, &creator);
}
