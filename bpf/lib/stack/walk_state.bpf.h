/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of a walk of a user stack, and its result.
 *
 * Contexts: see current_walk().
 */
#ifndef CORETAP_WALK_STATE_BPF_H
#define CORETAP_WALK_STATE_BPF_H

#include "lib/core/task.bpf.h"
#include "lib/stack/runtime.h"
#include "lib/stack/unwind.h"

OPT(bool, walk_leaf);     /* no walk: only the task's current address */
OPT(bool, unwind_tables); /* by tables (lib/stack/unwind.bpf.h) if there are any */

#define WALK_STEPS 2 /* by each call of a function that steps */

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

/* Most words of user memory that a walk which can be repeated has read. */
#define WALK_WORDS 64

/* The registers and words of user memory that determined a walk (lib/stack/same_walk.bpf.h). */
struct walk_words {
	u32 recorded;
	u32 number;           /* above WALK_WORDS: the walk depended on more than these words */
	u32 register_bp;      /* bp is the register's */
	u32 by_bp;            /* the walk depended on that value */
	u64 ip, sp, bp, link; /* of struct walk, when it began */
	u64 hash;             /* of the words */
	u16 at[WALK_WORDS];   /* their distances from sp, in words */
};

#define RUNTIME_MEETS 16
#define RUNTIME_SEGMENTS 256
#define RUNTIME_BLOCK 2048 /* bytes: a read costs as much as two or three frames */
#define RUNTIME_FRAME 128  /* bytes of one frame, at most */
#define RUNTIME_SEEN 64
#define RUNTIME_CODE_WORDS (RUNTIME_HOTSPOT_BLOB / 8)
/* In `guess`: a frame pointer, a multiple of 8 below 2^USER_BITS, above a frame's index. */
#define RUNTIME_GUESS_SHIFT 6
/* In `words`: the last frame of its segment. */
#define RUNTIME_LAST (1ULL << 62)

struct runtime_thread {
	u64 program;
	u64 id; /* the thread pointer */
};

/* Interpreted frames of the thread (lib/stack/runtimes.bpf.h), innermost first, in segments. */
struct runtime_walk {
	u32 begun;
	u32 frames;   /* in `words` */
	u32 segments; /* in the arrays of segments */
	u32 emitted;  /* of these */
	u32 given;    /* frames in the stack */
	u32 met;      /* in `meet` */
	u32 guesses;  /* in `guess` */
	u32 own_file; /* number of the interpreter's file, 0: none */
	u64 bias;     /* of the interpreter's mapping */
	u64 at;       /* the next frame; 0: no more */
	u64 interpreter;
	struct runtime_thread thread;
	u64 end;     /* Ruby: of its array of frames */
	u64 inside;  /* Ruby: the task was in the interpreter's loop */
	u64 c_frame; /* PHP: the frame whose opcode is not in memory, but this: */
	u64 opcode;
	union {
		u64 words[STACK_MOST];
		u64 guess[STACK_MOST]; /* frame pointers of frames without unwind table */
		struct stack part;     /* when the walk has ended */
	};
	/* An address in the native frame that runs the segment's frames; 0: any one of the loop. */
	u64 anchor[RUNTIME_SEGMENTS];
	/* Copy of memory that ends with a frame; behind it, one of a single frame. */
	u64 block[(RUNTIME_BLOCK + RUNTIME_FRAME) / 8];
	u64 block_at, block_end; /* addresses of the first */
	u64 frame;               /* where the last frame begins in them, in words */
	u64 shared_map;          /* V8: what descriptions of functions begin with; 0: not known */
	u64 code[RUNTIME_CODE_WORDS]; /* copy of the last code object */
	/*
	 * Code objects of this walk, by a part of their address: calls of one function are many.
	 * `seen` is the address + 1.
	 */
	u64 seen[RUNTIME_SEEN], seen_number[RUNTIME_SEEN];
	/* Code objects whose names have not been sent. */
	u64 meet[RUNTIME_MEETS], meet_number[RUNTIME_MEETS];
	struct runtime_file file;
};

/* State of a walk, and its result. */
struct walk {
	struct stack stack;
	u64 more[STACK_MOST - STACK_DEPTH]; /* frames behind those in `stack` */
	u64 hash;                           /* of the frames found */
	u64 program;                        /* program_of() the task */
	u64 mm;
	u64 ip, sp, bp;              /* bp: the frame pointer, rbp or x29 */
	u64 bx, di, r10, r13;        /* x86-64 */
	u64 link;                    /* arm64: the link register, if `exact`; x86-64: 0 */
	u64 sp_least;                /* arm64: after a guess, sp is this or more */
	u64 bp_at;                   /* address of the caller's saved bp; 0: in bp */
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
	struct walk_words read; /* if the caller sets read.recorded */
	struct mapping_search search;
	struct runtime_walk runtime;
	u64 hotspot; /* of hotspot_processes; 0: none */
	u64 java;    /* the size of its code; the address is in `jvm` */
	struct hotspot_process jvm;
	u64 used;        /* of claim_walk() */
	u64 interrupted; /* the task's number of a shared walk before this one */
};

/*
 * The walk that the program has claimed; NULL: the kernel has none for it. The tool includes
 * lib/stack/cpu_walk.bpf.h, or lib/stack/task_walk.bpf.h if its programs can be preempted.
 */
inline_ struct walk *current_walk(void);

/* Begins the use of a walk, and ends it. NULL, and counted: all are in use. */
inline_ struct walk *claim_walk(void);
inline_ void release_walk(struct walk *w);

#define USER_BITS 56 /* of user addresses, at most (with five levels of page tables) */

/* Identifies a program run: differs from others in the same address space, and from later ones.
 */
inline_ u64 program_of(u32 tgid, u32 exec_id)
{
	return (u64)tgid << 32 | exec_id;
}

inline_ u64 walk_hash(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

/* STACK_MOST of them. */
inline_ u64 *walk_frames(struct walk *w)
{
	return (u64 *)((void *)w + offsetof(struct walk, stack.ip));
}

/* Adds a frame: an address, STACK_IN_FILE, or STACK_RUNTIME. */
inline_ void walk_found(struct walk *w, u64 frame)
{
	u32 depth = w->stack.depth;

	barrier_var(depth);
	if (depth >= STACK_MOST)
		return;
	walk_frames(w)[depth] = frame;
	w->stack.depth = depth + 1;
	w->hash = walk_hash(w->hash, frame);
	if (!(frame & (STACK_IN_FILE | STACK_RUNTIME)))
		w->addresses++;
}

/*
 * Address spaces whose process was reported to the loader.
 * Addresses are reused: the value is the program that has it.
 */
MAP(LRU_HASH, stack_known_mms, 4096, u64, u64);

inline_ bool is_known_mm(struct walk *w)
{
	u64 *known = bpf_map_lookup_elem(&stack_known_mms, &w->mm);

	return known && *known == w->program;
}

#endif
