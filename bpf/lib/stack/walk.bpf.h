/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walk of a user stack; the loader's part is in src/unwind/walker.hpp. */
#ifndef CORETAP_WALK_BPF_H
#define CORETAP_WALK_BPF_H

#include "lib/core/task.bpf.h"
#include "lib/stack/unwind.h"

OPT(bool, walk_leaf);     /* no walk: only the task's current address */
OPT(bool, unwind_tables); /* by tables (lib/stack/unwind.bpf.h) if there are any */

#define WALK_BLOCK 1024 /* bytes of user stack read at once: a read costs as much as two frames */

#define MAPPING_WORDS 32

/* A search for a mapping (lib/stack/mapping.bpf.h). */
struct mapping_search {
	u64 address;
	u64 at; /* a node, finally the mapping; 0: none */
	u64 start, end, page, file;
	u64 vdso; /* its address in the address space */
	struct unwind_file_key key;
	u64 words[MAPPING_WORDS], again[MAPPING_WORDS];
};

/* State of a walk, and its result. */
struct walk {
	struct stack stack;
	u64 hash;    /* of the frames found */
	u64 program; /* program_of() the task */
	u64 mm;
	u64 ip, sp, bp, bx, di, r10;
	u64 bx_at;                   /* address of the caller's saved rbx; 0: in bx */
	struct unwind_mapping found; /* mapping of the last frame */
	u32 first_mapping, mappings;
	u32 exact;       /* ip is not a return address */
	u32 not_ready;   /* a frame was in a file that the loader has not read yet */
	u32 guessed;     /* the last frame was found by a guess */
	u32 only_signal; /* retrying with ip - 1: only a signal handler's return is accepted */
	u32 looked;      /* of the process's struct unwind_process */
	u32 unknown_map; /* a frame was in no mapping known to the loader */
	u32 block_bytes; /* bytes read into `block` */
	u32 addresses;   /* number of frames that are addresses, not in a known file */
	u64 unread;      /* struct file of the last unread file, whose key follows; 0: none */
	struct unwind_file_key unread_key;
	u64 block_at;
	u64 block[WALK_BLOCK / 8];
	struct mapping_search search;
};

/* For programs that no other such program can interrupt, such as sched_switch. */
CPU_SLOTS(walk_scratch, struct walk);

/*
 * Programs on user functions can be preempted since 6.0 (8c7dcb84e3b7), also by others of them
 * in another task: tools with such programs define STACK_OF_TASK before they include this.
 */
#ifdef STACK_OF_TASK
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct walk);
} task_walks SEC(".maps");

inline_ struct walk *current_walk(void)
{
	if (has_task_storage())
		return bpf_task_storage_get(&task_walks, bpf_get_current_task_btf(), 0,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	return cpu_slot(&walk_scratch);
}
#else
#define current_walk() ((struct walk *)cpu_slot(&walk_scratch))
#endif

#define USER64_CS 0x33
#define USER_BITS 56 /* of user addresses, at most (with five levels of page tables) */

/* Identifies a program run: differs from others in the same address space, and from later ones.
 */
#define program_of(tgid, exec_id) ((u64)(tgid) << 32 | (u32)(exec_id))

inline_ u64 walk_hash(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

/* Adds a frame: an address, or STACK_IN_FILE. */
inline_ void walk_found(struct walk *w, u64 frame)
{
	u32 depth = w->stack.depth;

	barrier_var(depth);
	if (depth >= STACK_DEPTH)
		return;
	w->stack.ip[depth] = frame;
	w->stack.depth = depth + 1;
	w->hash = walk_hash(w->hash, frame);
	if (!(frame & STACK_IN_FILE))
		w->addresses++;
}

/*
 * Address spaces whose process was reported to the loader.
 * Addresses are reused: the value is the program that has it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u64);
} stack_known_mms SEC(".maps");

inline_ bool is_known_mm(struct walk *w)
{
	u64 *known = bpf_map_lookup_elem(&stack_known_mms, &w->mm);

	return known && *known == w->program;
}

/* Helpers: 5.15 added the one for registers (dd6e10fbd9fb), 5.11 for the task (3ca1032ab7ab). */
#define has_task_regs() bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)

#include "lib/stack/mapping.bpf.h"
#include "lib/stack/unwind.bpf.h"

/*
 * Sets program and mm; false: no user stack. A kernel thread may have borrowed an
 * address space. In execve the registers are the caller's, and so is its address
 * space at first, if it was seen before: the new one has no stack until execve ends.
 */
inline_ bool walk_owner(struct walk *w)
{
	struct task_struct *t;
	bool executes;
	u32 flags;

	if (has_task_regs()) {
		t = bpf_get_current_task_btf();
		w->program = program_of(t->tgid, t->self_exec_id);
		w->mm = (u64)t->mm;
		flags = t->flags;
		executes = BPF_CORE_READ_BITFIELD(t, in_execve);
	} else {
		t = current_task();
		w->program = program_of(bpf_get_current_pid_tgid() >> 32,
					BPF_CORE_READ(t, self_exec_id));
		w->mm = (u64)BPF_CORE_READ(t, mm);
		flags = BPF_CORE_READ(t, flags);
		executes = BPF_CORE_READ_BITFIELD_PROBED(t, in_execve);
	}
	return !(flags & PF_KTHREAD) && (!executes || is_known_mm(w));
}

#ifdef __TARGET_ARCH_x86
/* The task's registers when last in user mode; 0 instead of cs: it never was. */
inline_ u32 walk_registers(struct walk *w)
{
	struct pt_regs *regs;
	u32 cs;

	if (has_task_regs()) {
		regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
		w->ip = regs->ip;
		w->sp = regs->sp;
		w->bp = regs->bp;
		w->bx = regs->bx;
		w->di = regs->di;
		w->r10 = regs->r10;
		cs = (u16)regs->cs;
	} else {
		regs = (void *)BPF_CORE_READ(current_task(), stack) + THREAD_BYTES;
		regs--;
		w->ip = BPF_CORE_READ(regs, ip);
		w->sp = BPF_CORE_READ(regs, sp);
		w->bp = BPF_CORE_READ(regs, bp);
		w->bx = BPF_CORE_READ(regs, bx);
		w->di = BPF_CORE_READ(regs, di);
		w->r10 = BPF_CORE_READ(regs, r10);
		cs = (u16)BPF_CORE_READ(regs, cs);
	}
	return w->ip ? cs : 0;
}

/*
 * Records the frame and steps to its caller's by the saved frame pointer only; not 0:
 * it was the last one. The kernel's walker also reads the frame after the last one,
 * which is a page fault of half a microsecond if the register is not a frame pointer.
 */
__noinline int walk_frame_pointer(void)
{
	struct walk *w = current_walk();
	u64 fp, next, ip;

	if (!w)
		return 1;
	walk_found(w, w->ip);
	fp = w->bp;
	if (fp < 4096 || fp >> USER_BITS || !unwind_read(w, fp, &next) ||
	    !unwind_read(w, fp + 8, &ip) || !ip || ip >> USER_BITS)
		return 1;
	w->ip = ip;
	w->bp = next > fp ? next : 0; /* callers' frames are at higher addresses */
	return 0;
}
#endif

/*
 * Stores the user stack of the running task in current_walk(): returns the number of
 * frames, or -1 if only the kernel's walker (bpf_get_stack) can do it. A separate
 * function: the verifier checks its loop once, not once for each path to it.
 */
__noinline long walk_user(void)
{
	struct walk *w = current_walk();
#ifdef __TARGET_ARCH_x86
	bool ended = false;
	u32 cs;
#endif

	if (!w || !walk_owner(w))
		return 0;
#ifdef __TARGET_ARCH_x86
	cs = walk_registers(w);
	if (!cs)
		return 0;
	if (cs != USER64_CS)
		return -1;
	w->stack.depth = 0;
	w->stack.end = STACK_END_OPEN;
	w->stack.guessed = 0;
	w->stack.image = STACK_IMAGE(w->program, 1);
	w->hash = 0;
	w->addresses = 0;
	w->unknown_map = 0;
	if (walk_leaf) {
		walk_found(w, w->ip);
		w->stack.end = STACK_END_LEAF;
	} else if (!w->mm) {
		walk_found(w, w->ip);
		w->stack.end = STACK_END_EXITING;
	} else {
		w->block_bytes = 0;
		if (unwind_tables)
			unwind_begin(w);
		/* One more: a step may have to be repeated. */
		for (u32 i = 0; i < STACK_DEPTH + 1 && !ended; i++) {
			if (w->stack.depth >= stack_depth)
				break;
			ended = unwind_tables ? unwind_step() : walk_frame_pointer();
		}
		if (unwind_tables && w->not_ready)
			w->stack.end = STACK_END_NOT_READY;
		else if (!ended)
			w->stack.end = STACK_END_DEPTH;
	}
	if (!w->addresses) /* valid in all processes */
		w->stack.image = 0;
	return w->stack.depth;
#else
	return -1;
#endif
}

#endif
