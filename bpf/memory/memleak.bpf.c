// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* memleak: memory that was allocated and not freed, by allocating stack. */
#include "lib/stack/task_walk.bpf.h"
#include "lib/syscall/syscall.bpf.h"
#include "lib/targets/call.bpf.h"
#include "lib/core/program.bpf.h"
#include "memory/outstanding.bpf.h"
#include "memory/memleak.h"

RECORD(memleak_event);

OPT(bool, trace);
OPT(__u32, own_tgid);

/* ---- user memory ---- */

/* The task's current outermost call of an allocating function. */
struct allocation {
	struct call call;
	u64 bytes;
	u64 old; /* block or mapping that is to be replaced */
	u64 old_bytes;
	u64 result_at;          /* where posix_memalign() stores its result */
	struct alloc_info kept; /* the old block, until the result is known */
	u64 stack;              /* key of the last stack */
	u32 function;
	bool is_kept;
	bool of_nothing; /* realloc(p, 0), which may free p and return NULL */
	u16 pad;
};

TASK_SLOT(struct allocation);

#define ROUND(bytes) (((bytes) + page_bytes - 1) & ~(page_bytes - 1))

inline_ struct alloc_key user_key(u64 address)
{
	return (struct alloc_key){ .address = address, .owner = bpf_get_current_pid_tgid() >> 32 };
}

inline_ void tell(enum memleak_function function, u64 address, u64 old, u64 bytes, bool sized)
{
	struct memleak_event *e = emit_begin(sizeof(*e));

	if (!e)
		return;
	e->head.time_ns = bpf_ktime_get_ns();
	e->function = function;
	e->address = address;
	e->old = old;
	e->bytes = bytes;
	e->sized = sized;
	identify_current(&e->who);
	emit_end(e);
}

static __noinline struct allocation *enter(struct pt_regs *ctx, enum memleak_function function,
					   u64 bytes)
{
	struct allocation *a;
	bool again;

	a = wanted_slot();
	if (!a)
		return NULL;
	/* The same call probed twice, by two names of a function or because
	 * one jumps to the other: the old block is kept already. */
	again = a->call.start && a->call.sp == sp_after_return(ctx);
	if (!call_begin(&a->call, ctx))
		return NULL;
	if (!again) {
		a->function = function;
		a->is_kept = false;
	}
	a->bytes = bytes;
	a->old = 0;
	return a;
}

/*
 * The old block is removed before the call: once it is free, another
 * thread may get its address. It is restored if the call fails.
 */
inline_ void set_aside(struct allocation *a, u64 old)
{
	struct alloc_key key = user_key(old);

	a->old = old;
	if (old && !trace && !a->is_kept)
		a->is_kept = track_removal(&key, &a->kept);
}

inline_ void put_back(struct allocation *a)
{
	struct alloc_key key = user_key(a->old);

	if (a->is_kept)
		track_alloc(&key, &a->kept);
}

inline_ void allocated(struct pt_regs *ctx, struct allocation *a, u64 address, u64 time_ns,
		       bool mapping)
{
	struct alloc_key key = user_key(address);
	struct alloc_info h = { .bytes = a->bytes, .time_ns = time_ns, .mapping = mapping };

	if (!alloc_wanted(address, a->bytes))
		return;
	a->stack = h.stack = stack_of_user(ctx, a->stack);
	if (!h.stack)
		count(LEDGER_STACK_FAILED);
	h.tgid = current_tgid();
	bpf_get_current_comm(h.comm, sizeof(h.comm));
	track_alloc(&key, &h);
}

/* The ending call, if it is an outermost one whose entry was seen; its start in *start. */
inline_ struct allocation *leave(struct pt_regs *ctx, u64 *start)
{
	struct allocation *a = current_slot(false);

	if (!a || !call_end(&a->call, ctx))
		return NULL;
	*start = a->call.start;
	a->call.start = 0;
	return a;
}

/* `start`: of the call. */
inline_ int end_mapping(struct pt_regs *ctx, struct allocation *a, u64 address, u64 start)
{
	if (call_failed((long)address)) {
		put_back(a);
		return 0;
	}
	if (!a->is_kept && a->old_bytes)
		send_note(ALLOC_UNMAPPED, start, a->old, ROUND(a->old_bytes));
	/* Later than any munmap that freed the address range. */
	allocated(ctx, a, address, bpf_ktime_get_ns(), true);
	return 0;
}

static __noinline int end(struct pt_regs *ctx)
{
	u64 start, address = PT_REGS_RC(ctx);
	struct allocation *a = leave(ctx, &start);
	bool mapping;

	if (!a)
		return 0;
	mapping = a->function == MEMLEAK_MMAP || a->function == MEMLEAK_MREMAP;
	if (a->function == MEMLEAK_POSIX_MEMALIGN &&
	    ((u32)address || bpf_probe_read_user(&address, sizeof(address), (void *)a->result_at)))
		address = 0;
	if (trace) {
		if (alloc_sampled(address))
			tell(a->function, mapping && call_failed((long)address) ? 0 : address,
			     a->old, a->bytes, true);
		return 0;
	}
	if (mapping)
		return end_mapping(ctx, a, address, start);
	if (address)
		allocated(ctx, a, address, start, false);
	else if (!a->of_nothing)
		put_back(a);
	return 0;
}

inline_ int begin(struct pt_regs *ctx, enum memleak_function function, u64 bytes)
{
	enter(ctx, function, bytes);
	return 0;
}

/* On overflow the maximum value, with which the function fails. */
inline_ u64 product(u64 count, u64 bytes_of_each)
{
	u64 most = count ? ~0ULL / count : ~0ULL;

	barrier_var(
		most); /* or the compiler makes it a multiplication of 128 bits, which BPF lacks */
	return bytes_of_each > most ? ~0ULL : count * bytes_of_each;
}

static __noinline int begin_realloc(struct pt_regs *ctx, enum memleak_function function, u64 old,
				    u64 count, u64 bytes_of_each)
{
	struct allocation *a = enter(ctx, function, product(count, bytes_of_each));

	if (!a)
		return 0;
	a->of_nothing = !count || !bytes_of_each;
	set_aside(a, old);
	return 0;
}

/* posix_memalign() */
inline_ int begin_at(struct pt_regs *ctx, u64 bytes, u64 result_at)
{
	struct allocation *a = enter(ctx, MEMLEAK_POSIX_MEMALIGN, bytes);

	if (a)
		a->result_at = result_at;
	return 0;
}

ON_USER_FUNCTION("uretprobe/same", on_allocated, end(ctx))

#define ALLOCATES(function, n, began) \
	ON_USER_FUNCTION("uprobe/libc:" #function "/" #n, on_##function, began)

#define P1 PT_REGS_PARM1(ctx)
#define P2 PT_REGS_PARM2(ctx)
#define P3 PT_REGS_PARM3(ctx)

ALLOCATES(malloc, 1, begin(ctx, MEMLEAK_MALLOC, P1))
ALLOCATES(calloc, 2, begin(ctx, MEMLEAK_CALLOC, product(P1, P2)))
ALLOCATES(realloc, 2, begin_realloc(ctx, MEMLEAK_REALLOC, P1, 1, P2))
ALLOCATES(reallocarray, 3, begin_realloc(ctx, MEMLEAK_REALLOCARRAY, P1, P2, P3))
ALLOCATES(posix_memalign, 3, begin_at(ctx, P3, P1))
ALLOCATES(aligned_alloc, 2, begin(ctx, MEMLEAK_ALIGNED_ALLOC, P2))
ALLOCATES(memalign, 2, begin(ctx, MEMLEAK_MEMALIGN, P2))
ALLOCATES(valloc, 1, begin(ctx, MEMLEAK_VALLOC, P1))
ALLOCATES(pvalloc, 1, begin(ctx, MEMLEAK_PVALLOC, P1))

inline_ int freed(struct pt_regs *ctx)
{
	u64 address = PT_REGS_PARM1(ctx);
	struct alloc_key key = user_key(address);

	if (!address)
		return 0;
	if (!trace)
		track_free(&key);
	else if (alloc_sampled(address) && keep_current())
		tell(MEMLEAK_FREE, address, 0, 0, false);
	return 0;
}

ON_USER_FUNCTION("uprobe/libc:free/1", on_free, freed(ctx))

/* ---- mappings: they can be unmapped in parts ---- */

#define MAP_FIXED 0x10

/* Mappings replaced by MAP_FIXED are unmapped. */
inline_ int begin_mapping(struct pt_regs *ctx)
{
	struct allocation *a = enter(ctx, MEMLEAK_MMAP, PT_REGS_PARM2(ctx));

	if (!a)
		return 0;
	a->old_bytes = 0;
	if ((u32)PT_REGS_PARM4(ctx) & MAP_FIXED) {
		a->old = PT_REGS_PARM1(ctx);
		a->old_bytes = a->bytes;
	}
	return 0;
}

ON_USER_FUNCTION("uprobe/libc:mmap/4", on_mmap, begin_mapping(ctx))

inline_ bool is_whole_mapping(struct alloc_key *key, u64 bytes)
{
	struct alloc_info *h = bpf_map_lookup_elem(&allocs, key);

	return h && h->mapping && ROUND(h->bytes) == ROUND(bytes);
}

inline_ int begin_moving(struct pt_regs *ctx)
{
	struct allocation *a = enter(ctx, MEMLEAK_MREMAP, PT_REGS_PARM3(ctx));
	struct alloc_key key;

	if (!a)
		return 0;
	a->old = PT_REGS_PARM1(ctx);
	a->old_bytes = PT_REGS_PARM2(ctx);
	key = user_key(a->old);
	if (is_whole_mapping(&key, a->old_bytes))
		set_aside(a, a->old);
	return 0;
}

ON_USER_FUNCTION("uprobe/libc:mremap/3", on_mremap, begin_moving(ctx))

inline_ int unmap(struct pt_regs *ctx)
{
	u64 address = PT_REGS_PARM1(ctx), bytes = PT_REGS_PARM2(ctx);
	struct alloc_key key = user_key(address);
	struct allocation *a = current_slot(false);

	/* The kernel rejects other arguments. */
	if (!bytes || address & 4095)
		return 0;
	/* An allocating function that unmaps memory it never returned. */
	if (a && a->call.start && sp_after_return(ctx) < a->call.sp)
		return 0;
	if (trace) {
		if (alloc_sampled(address) && keep_current())
			tell(MEMLEAK_MUNMAP, address, 0, bytes, true);
	} else {
		if (is_whole_mapping(&key, bytes))
			track_free(&key);
		/* Parts of other mappings may be in the range. */
		if (may_own_allocs())
			send_note(ALLOC_UNMAPPED, bpf_ktime_get_ns(), address, ROUND(bytes));
	}
	return 0;
}

ON_USER_FUNCTION("uprobe/libc:munmap/2", on_munmap, unmap(ctx))

/* ---- kernel memory ----
 * Raw tracepoints, as only numbers are needed: typed ones reject pointers
 * to const void in 5.10, and arithmetic on addresses in every kernel.
 */

/* Never returned by an allocator: NULL, and the result of kmalloc(0). */
#define NO_MEMORY 16

/* An interrupt may allocate while a program records a stack for the task. */
CPU_SLOTS(kernel_busy, u64);

inline_ int kernel_alloc(void *ctx, enum memleak_function function, u64 address, u64 bytes)
{
	struct alloc_key key = { .address = address };
	struct alloc_info h = { .bytes = bytes };
	u64 *busy;

	if (address <= NO_MEMORY || !alloc_wanted(address, bytes))
		return 0;
	h.tgid = current_tgid();
	if (h.tgid == own_tgid)
		return 0;
	if (trace) {
		tell(function, address, 0, bytes, true);
		return 0;
	}
	busy = cpu_slot(&kernel_busy);
	if (!busy)
		return 0;
	if (*busy)
		return counted(LEDGER_MISSED);
	*(volatile u64 *)busy = 1;
	h.stack = stack_of_kernel(ctx, 0);
	*(volatile u64 *)busy = 0;
	if (!h.stack)
		count(LEDGER_STACK_FAILED);
	h.time_ns = bpf_ktime_get_ns();
	bpf_get_current_comm(h.comm, sizeof(h.comm));
	track_alloc(&key, &h);
	return 0;
}

inline_ int kernel_free(enum memleak_function function, u64 address)
{
	struct alloc_key key = { .address = address };

	if (address <= NO_MEMORY)
		return 0;
	if (!trace)
		track_free(&key);
	else if (alloc_sampled(address) && current_tgid() != own_tgid)
		tell(function, address, 0, 0, false);
	return 0;
}

PROGRAM(on_kmalloc, "raw_tp/kmalloc", kernel_alloc(ctx, MEMLEAK_KMALLOC, ctx[1], ctx[3]))

/* Until 6.1 allocations on a given node had separate tracepoints (11e9734bcb6a), */
PROGRAM(on_kmalloc_node, "raw_tp/kmalloc_node", kernel_alloc(ctx, MEMLEAK_KMALLOC, ctx[1], ctx[3]))
PROGRAM(on_kmem_cache_alloc_node, "raw_tp/kmem_cache_alloc_node",
	kernel_alloc(ctx, MEMLEAK_KMEM_CACHE_ALLOC, ctx[1], ctx[3]))

/* with sizes in place of the cache that is passed since then (2c1d697fb8ba). */
TP_ARGS(kmem_cache_alloc_node);

TRACING(on_kmem_cache_alloc, "raw_tp/kmem_cache_alloc")
{
	struct kmem_cache *cache;
	u64 bytes;

	if (tp_args_kmem_cache_alloc_node) {
		bytes = ARG(ctx, 3);
	} else {
		cache = (void *)ARG(ctx, 2);
		bytes = BPF_CORE_READ(cache, size);
	}
	return kernel_alloc(ctx, MEMLEAK_KMEM_CACHE_ALLOC, ctx[1], bytes);
}

PROGRAM(on_kfree, "raw_tp/kfree", kernel_free(MEMLEAK_KFREE, ctx[1]))
PROGRAM(on_kmem_cache_free, "raw_tp/kmem_cache_free", kernel_free(MEMLEAK_KMEM_CACHE_FREE, ctx[1]))

/* Pages are keyed by the address of their struct page; that of the first is used for a block. */
PROGRAM(on_page_alloc, "raw_tp/mm_page_alloc",
	kernel_alloc(ctx, MEMLEAK_PAGE_ALLOC, ctx[0], page_bytes << ((u32)ctx[1] & 31)))
PROGRAM(on_page_free, "raw_tp/mm_page_free", kernel_free(MEMLEAK_PAGE_FREE, ctx[0]))

/* Kernels after 5.10 have the caller as first argument. */
TP_ARGS(percpu_alloc_percpu);

TRACING(on_percpu_alloc, "raw_tp/percpu_alloc_percpu")
{
	u64 bytes, address;

	if (tp_args_percpu_alloc_percpu >= 10) {
		bytes = ARG(ctx, 3);
		address = ARG(ctx, 7);
	} else {
		bytes = ARG(ctx, 2);
		address = ARG(ctx, 6);
	}
	return kernel_alloc(ctx, MEMLEAK_PERCPU_ALLOC, address, bytes);
}

PROGRAM(on_percpu_free, "raw_tp/percpu_free_percpu", kernel_free(MEMLEAK_PERCPU_FREE, ctx[2]))
