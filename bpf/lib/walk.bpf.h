/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walk of a user stack; the loader's part of it is src/unwind/walker.hpp. */
#ifndef CORETAP_WALK_BPF_H
#define CORETAP_WALK_BPF_H

#include "lib/task.bpf.h"
#include "lib/unwind.h"

OPT(bool, walk_leaf);     /* no walk: only where the task stands */
OPT(bool, unwind_tables); /* by tables (lib/unwind.bpf.h) wherever there are some */

#define WALK_BLOCK 1024 /* of a user stack, read at once: a read costs as much as two frames */

#define MAPPING_WORDS 32

/* A search for a mapping (lib/mapping.bpf.h). */
struct mapping_search {
	u64 address;
	u64 at; /* a node, in the end the mapping; 0: none */
	u64 start, end, page, file;
	u64 vdso; /* where the address space has it */
	struct unwind_file_key key;
	u64 words[MAPPING_WORDS], again[MAPPING_WORDS];
};

/* A walk under way; in the end what it has found. */
struct walk {
	struct stack stack;
	u64 hash;    /* of the frames so far */
	u64 program; /* who it is: program_of() */
	u64 mm;
	u64 ip, sp, bp, bx, di, r10;
	u64 bx_at;                   /* where the caller's rbx is kept; 0: in bx */
	struct unwind_mapping found; /* the last frame's */
	u32 first_mapping, mappings;
	u32 exact;       /* ip is no return address */
	u32 not_ready;   /* has passed a file that the loader has not read yet */
	u32 guessed;     /* the last frame was reached by a guess */
	u32 only_signal; /* ip - 1 is tried, for a signal handler's return */
	u32 looked;      /* of the process' struct unwind_process */
	u32 unknown_map; /* has come where the loader knows of no mapping */
	u32 block_bytes; /* of what was read last */
	u32 addresses;   /* frames that are addresses of the process, in no file that is known */
	u64 unread;      /* the last such file: struct file, and which it is; 0: none */
	struct unwind_file_key unread_key;
	u64 block_at;
	u64 block[WALK_BLOCK / 8];
	struct mapping_search search;
};

/* For programs that nothing of their kind can interrupt, such as sched_switch. */
CPU_SLOTS(walk_scratch, struct walk);

/*
 * Programs on user functions can be preempted since 6.0 (8c7dcb84e3b7), by their like in another
 * task too: those define STACK_OF_TASK before they include this.
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
#define USER_BITS 56 /* of addresses of programs, at most (with five levels of page tables) */

/* What tells a program that runs from another one in the same address space, or from a later one.
 */
#define program_of(tgid, exec_id) ((u64)(tgid) << 32 | (u32)(exec_id))

inline_ u64 walk_hash(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

/* A frame: an address, or STACK_IN_FILE. */
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
 * Address spaces whose process the loader has been told of. Addresses are used again: the value
 * tells by whom.
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

/* 5.15 brought the helper for registers (dd6e10fbd9fb), 5.11 that for the task (3ca1032ab7ab). */
#define has_task_regs() bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)

#include "lib/mapping.bpf.h"
#include "lib/unwind.bpf.h"

/*
 * Whose stack it is; false: there is none. A kernel thread may have borrowed an address space. In
 * execve the registers are the caller's, and so is its address space at first, if it has
 * been met before: the new one has no stack until execve ends.
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
/* The task's registers when it was in user mode last; 0 instead of cs: it never was. */
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
 * Notes the frame and goes to its caller's by the saved frame pointer alone; not 0: it is the last
 * one. The kernel's own walker reads the frame behind the last one too, and where a frame pointer
 * is none that is a page fault of half a microsecond.
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
	w->bp = next > fp ? next : 0; /* callers' frames lie above */
	return 0;
}
#endif

/*
 * User stack of the running task, into current_walk(): frames, or -1 where only the kernel's own
 * walker (bpf_get_stack) can. A function of its own: the verifier walks its loop once, not once for
 * each way that leads here.
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
		/* One more: a step may find that it has to be taken again. */
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
	if (!w->addresses) /* the same in all processes */
		w->stack.image = 0;
	return w->stack.depth;
#else
	return -1;
#endif
}

#endif
