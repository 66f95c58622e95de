/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Included first by every kernel program: types, helpers, the ledger.
 *
 * Contexts: all, NMIs included.
 */
#ifndef CORETAP_BPF_H
#define CORETAP_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "lib/arch/registers.bpf.h"
#include "lib/core/placeholders.h"
#include "lib/core/shared.h"

typedef __u64 u64;
typedef __u32 u32;
typedef __u16 u16;
typedef __u8 u8;
typedef __s64 s64;
typedef __s32 s32;

#define inline_ static __always_inline __attribute__((unused))

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * OPT: set by the loader before load, so that the verifier removes unused code.
 * TP_ARGS: the loader sets the number of arguments of this kernel's tracepoint (0: absent).
 */
#define OPT(type, name) OPT_OR(type, name, 0)
#define OPT_OR(type, name, otherwise) const volatile type name = otherwise
#define TP_ARGS(tracepoint) const volatile __u32 tp_args_##tracepoint = 0

OPT(__u32, stack_depth);      /* maximum number of frames per kernel stack */
OPT(__u32, stack_user_depth); /* and per user stack */
OPT_OR(__u64, page_bytes, 4096);

/* Size and alignment of a task's kernel stack, on all architectures of bpf/lib/arch. */
#define THREAD_BYTES (page_bytes > 16384 ? page_bytes : 16384)

/*
 * Argument n of a BTF tracepoint, if n depends on the kernel: the compiler would
 * merge two such loads into one at a computed offset, which the verifier rejects.
 */
#define ARG(ctx, n)                                                                         \
	({                                                                                  \
		u64 arg_;                                                                   \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(arg_) : "r"(ctx), "i"((n)*8)); \
		arg_;                                                                       \
	})

/* Argument n that is the address of a function: the verifier rejects a direct load. */
inline_ u64 function_arg(u64 *ctx, u32 n)
{
	u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), &ctx[n]);
	return address;
}

/*
 * One slot per possible CPU; the loader sets the number. Slots are whole cache lines:
 * sharing one between CPUs costs more than everything else that a program does.
 */
#define CPU_SLOTS(name, slot)                      \
	struct name##_line {                       \
		slot of_cpu;                       \
	} __attribute__((aligned(64)));            \
	struct {                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);  \
		__uint(map_flags, BPF_F_MMAPABLE); \
		__uint(max_entries, 1);            \
		__type(key, u32);                  \
		__type(value, struct name##_line); \
	} name SEC(".maps")

inline_ void *cpu_slot(void *map)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(map, &cpu);
}

/* A map of this kind (HASH, LRU_HASH, ARRAY); 1 entry: the loader may set the size. */
#define MAP(kind, name, entries, key_type, value_type) \
	struct {                                       \
		__uint(type, BPF_MAP_TYPE_##kind);     \
		__uint(max_entries, entries);          \
		__type(key, key_type);                 \
		__type(value, value_type);             \
	} name SEC(".maps")

CPU_SLOTS(ledger, struct ledger);

/* Atomic: a program in an interrupt may run in the middle of this one. */
inline_ void count_n(enum ledger_cause cause, u64 n)
{
	struct ledger *l = cpu_slot(&ledger);

	if (l)
		__sync_fetch_and_add(&l->count[cause], n);
}

inline_ void count(enum ledger_cause cause)
{
	count_n(cause, 1);
}

/* For programs, and functions that return whether an event is wanted. */
inline_ int counted(enum ledger_cause cause)
{
	count(cause);
	return 0;
}

/* The user's filters exclude the event. */
inline_ int filtered(void)
{
	return counted(LEDGER_FILTERED);
}

/* Stores a value; if there is no room for it, that is counted. */
inline_ int map_put(void *map, const void *key, const void *value)
{
	return bpf_map_update_elem(map, key, value, BPF_ANY) ? counted(LEDGER_UNTRACKED) : 0;
}

/* The value of this key, first a copy of `first`; NULL, and counted: there is no room for it. */
inline_ void *map_row(void *map, const void *key, const void *first)
{
	void *v = bpf_map_lookup_elem(map, key);

	if (!v) {
		bpf_map_update_elem(map, key, first, BPF_NOEXIST);
		v = bpf_map_lookup_elem(map, key);
	}
	if (!v)
		count(LEDGER_UNTRACKED);
	return v;
}

/* Clocks of two CPUs may differ slightly: returns 0 instead of a huge wrapped difference. */
inline_ u64 since(u64 start, u64 now)
{
	return now > start ? now - start : 0;
}

inline_ u64 lesser(u64 a, u64 b)
{
	return a < b ? a : b;
}

static void (*const preempt_disable)(void) __attribute__((unused)) = (void *)PREEMPT_DISABLE_CALL;
static void (*const preempt_enable)(void) __attribute__((unused)) = (void *)PREEMPT_ENABLE_CALL;

/*
 * A program whose body runs with preemption off: no other program changes the CPU's memory in
 * between.
 *
 * For programs that the kernel runs with preemption on: at functions (fentry, fexit), and since
 * 7.0 at tracepoints ("tracing: Guard __DECLARE_TRACE() use of __DO_TRACE_CALL() with SRCU-fast"),
 * those of system calls included. The loader completes or removes the calls
 * (src/program/instructions.hpp). A task whose preemption is due is preempted when its body ends,
 * still within the program: until the task runs again, the kernel skips the program for others
 * on that CPU, which LEDGER_MISSED counts.
 */
#define UNPREEMPTED(name, section, context)    \
	inline_ int name##_body(context *ctx); \
	SEC(section)                           \
	int name(context *ctx)                 \
	{                                      \
		int result;                    \
                                               \
		preempt_disable();             \
		result = name##_body(ctx);     \
		preempt_enable();              \
		return result;                 \
	}                                      \
	inline_ int name##_body(context *ctx)

/* At a tracepoint (tp_btf, raw_tp) or function, with the arguments ctx[0], ctx[1] ... */
#define TRACING(name, section) UNPREEMPTED(name, section, u64)

#endif
