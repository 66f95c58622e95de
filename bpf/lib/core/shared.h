/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Definitions shared by the kernel programs and the loader, in every tool. */
#ifndef CORETAP_SHARED_H
#define CORETAP_SHARED_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <linux/types.h>
#endif

#define COMM_LEN 16

/* Why an event is not in the output. Output is counted where it is written. */
enum ledger_cause {
	LEDGER_FILTERED,      /* excluded by the user's filters */
	LEDGER_LOST,          /* ring buffer full */
	LEDGER_UNTRACKED,     /* no entry in a map: full, or refused for a moment */
	LEDGER_UNMATCHED,     /* its start or end was not seen */
	LEDGER_TRUNCATED,     /* shown, but shortened */
	LEDGER_STACK_FAILED,  /* shown, but without its stack */
	LEDGER_STACK_CUT,     /* shown, but its user stack ends too early */
	LEDGER_STACK_GUESSED, /* shown, but frames of its user stack were guessed */
	LEDGER_OVERWRITTEN,   /* in a flight recorder, before the dump */
	LEDGER_MISSED,        /* the kernel skipped the program (counted by the kernel) */
	LEDGER_UNJUDGED,      /* a filter's expression failed to read memory */
	LEDGER_CAUSES
};

/* One per CPU, on a separate cache line, read through mmap. */
struct ledger {
	__u64 count[16];
};

#define HIST_SLOTS 64

/*
 * Slot n counts values v with 2^n <= v < 2^(n+1), in steps; slot 0 also 0.
 * If linear, n <= v < n+1; the last slot also counts all larger values.
 */
struct hist {
	__u64 slots[HIST_SLOTS];
	__u64 total;  /* sum of the values, in units */
	__u64 named;  /* 1: the text of its key was sent */
	__u64 pad[6]; /* whole cache lines: one struct per CPU */
};

/*
 * The largest value of an interval (bpf/lib/aggregate/extreme.bpf.h): the interval's number in the
 * upper bits, the value below. There are two, as one interval is read while the next one is
 * counted.
 */
#define EXTREME_BITS 48

struct extreme {
	__u64 slots[2];
};

/* Requested by the shared options -p -t -u --comm --name -c --not-pid --not-comm, `-- COMMAND`.
 */
struct task_filter {
	__u8 on; /* any of the filters below */
	__u8 by_tgid;
	__u8 by_tid;
	__u8 by_uid;
	__u8 by_comm;
	__u8 by_name;
	__u8 by_cgroup;
	__u8 follow;   /* new children of a wanted process are wanted */
	__u8 not_tgid; /* by_tgid: excludes these processes instead of selecting them */
	__u8 not_comm;
	__u8 pad[6];
	__u64 cgroup;                /* id of a cgroup v2; its descendants match too */
	__u64 name_first, name_last; /* bits of the first and last bytes of name parts */
};

/* Total number of bytes in all parts given by --name; each has a bit. */
#define NAME_BITS 64

#define STACK_DEPTH 127

/* Why a walk of a user stack ended. */
enum stack_end {
	STACK_END_OPEN,       /* frame pointers: the outermost frame shows if it is complete */
	STACK_END_WHOLE,      /* the start of the program or thread */
	STACK_END_DEPTH,      /* as many frames as requested */
	STACK_END_NOT_READY,  /* frame pointers, as this process has no tables yet */
	STACK_END_NO_MAPPING, /* an address outside all known code */
	STACK_END_NO_CFI,     /* code without unwind information or frame pointers */
	STACK_END_NO_MEMORY,  /* code whose tables did not fit */
	STACK_END_OTHER_RULE, /* unwind information that the tables cannot represent */
	STACK_END_UNREADABLE,
	STACK_END_BACKWARDS, /* a caller's frame below the callee's */
	STACK_END_EXITING,   /* the task has released its memory */
	STACK_END_LEAF,      /* no walk requested */
	STACK_ENDS
};

/* Set in a frame interrupted by a signal: the exact pc, not a return address. */
#define STACK_EXACT (1ULL << 63)

/*
 * Set in a frame of a file that the loader knows: instead of an address, the
 * frame is the file's number above a location in its code (struct unwind_mapping:
 * bias). It is the same in all processes, and stays valid after they exit.
 */
#define STACK_IN_FILE (1ULL << 62)
#define STACK_PLACE_BITS 46
#define STACK_PLACE_MASK ((1ULL << STACK_PLACE_BITS) - 1)

/*
 * A user stack of more frames than that is stored in parts, the outermost ones first, so that they
 * are shared: STACK_PART frames each, and as many as remain in the innermost. All but the outermost
 * end with the next part's key.
 */
#define STACK_PART (STACK_DEPTH - 1)
#define STACK_PARTS 5
#define STACK_MOST 512
#define STACK_LINKED 0x8000 /* in the depth: the last word is a key */
#define STACK_INTERRUPTED 1 /* begins where the CPU was, not in functions of tracing */

struct stack {
	__u16 depth;
	__u8 end;     /* enum stack_end */
	__u8 guessed; /* number of frames found only by frame pointer, where tables should apply */
	__u32 image;  /* of a user stack: how to interpret its addresses, stack_image(); 0: none.
		       * Of a kernel stack: STACK_INTERRUPTED, or 0 */
	__u64 ip[STACK_DEPTH];
};

enum stack_state {
	STACK_TASK,
	STACK_RUNNABLE, /* left the CPU while runnable: preempted, not blocked */
	STACK_IDLE,     /* the idle task, or an interrupt of it */
	STACK_IRQ,      /* an interrupt; the task is the interrupted one */
	STACK_SOFTIRQ,
};

/* A task in an entry: one that ran or blocked, or woke another. */
struct stack_party {
	__u64 kernel; /* key in `stacks`; 0: none */
	__u64 user;
	__u32 tgid; /* in the loader's pid namespace */
	__u32 tid;
	__u32 state; /* enum stack_state */
	union {
		__u32 waiting; /* was still off the CPU when tracing ended */
		__u32 event;   /* of a sampler: which of its perf events */
	};
	union {
		char comm[COMM_LEN];
		__u64 cgroup; /* with stack_by_cgroup: its id (version 2) */
	};
};

/*
 * Keyed by a hash of the tasks, which follow it and are compared, too: the
 * task, its waker, that one's waker, and so on; the last ones may be empty.
 */
struct stack_sum {
	__u64 total_ns;
	__u64 count;
};

enum stack_process_news {
	STACK_PROCESS_MET,     /* its user stack was taken for the first time */
	STACK_PROCESS_CHANGED, /* it runs code unknown to the loader */
	STACK_PROCESS_FORKED,  /* its parent is known, and it has a copy of the parent's memory */
};

/*
 * A process gets another program by exec, and other code at the same addresses
 * by dlclose and dlopen: counts of the former and of the latter, starting at 1.
 */
static inline __attribute__((always_inline, unused)) __u32 stack_image(__u64 program,
								       __u16 generation)
{
	return (__u32)program << 16 | generation;
}

#define STACK_PROCESS 0xfffffffffffffffdULL /* no other record starts with it */

struct stack_process {
	__u64 mark;
	__u32 tgid;
	__u32 forked_from; /* its parent, while it runs the parent's program; else 0 */
	__u64 program;     /* tgid in the initial pid namespace, and count of execs */
	__u64 stack_begin; /* of the program's memory: shows with /proc/PID/stat if it still runs */
	__u32 news;
	__u32 pad;
};

/* Targets of the command line, by how programs get the target's id. */
enum target_kind {
	TARGET_KERNEL,     /* functions of the kernel, by kprobes */
	TARGET_USER,       /* functions of programs, USDT probes, by uprobes */
	TARGET_TRACEPOINT, /* raw tracepoints */
	TARGET_EVENT,      /* tracepoints by perf events */
	TARGET_KINDS
};

/* Placeholder for the target number in a program that is copied for each target. */
#define TARGET_MARK 0x7a51c0de

/* Limit of nested traced calls per task (traced_calls.bpf.h); a power of two. */
#define CALL_LEVELS 32

/* Text of any length: its offset in the record, and its length. */
struct text {
	__u16 at;
	__u16 bytes;
};

/* Kinds of path texts (bpf/lib/paths/path.bpf.h). */
enum path_kind {
	PATH_KIND_WHOLE, /* components, last first, each with a terminator */
	PATH_KIND_CUT,   /* the same; components towards the root are missing */
	PATH_KIND_NAME,  /* a name: the file is not in a directory */
};

/* A file: inode numbers are reused, with another generation. */
struct file_id {
	__u64 inode;
	__u32 generation;
	__u32 dev; /* in the kernel's encoding */
};

/* Text for the row of an aggregate with this key (bpf/lib/paths/row_text.bpf.h); the text follows.
 */
#define ROW_TEXT_KEY 64

struct row_text {
	char key[ROW_TEXT_KEY]; /* padded with zeros */
	__u32 kind;             /* enum path_kind */
	struct text text;
};

/*
 * System calls by index: numbers of the native table, then those of the table for
 * 32-bit callers. The last index of each half is for all numbers outside the table.
 */
#define CALLS_COMPAT 512
#define CALLS_OTHER (CALLS_COMPAT - 1)
#define CALLS (2 * CALLS_COMPAT)

/* A code address in a process (bpf/lib/core/user_code.bpf.h), for the loader to symbolize. */
struct user_code {
	__u64 address;     /* 0: not known */
	__u64 stack_begin; /* of the program's memory, as in struct stack_process */
	__u32 pid;
	__u32 image; /* changes with each exec */
};

/* Kernel code from address `begin`, before `end`; 0: not known. */
struct code_range {
	__u64 begin;
	__u64 end;
};

/* The task that does or owns something, with ids of the loader's pid namespace. */
struct task_id {
	__u64 cgroup;
	__u32 pid;
	__u32 tid;
	__u32 uid;
	__u32 known; /* 0: the task is not known; other members are undefined */
	char comm[COMM_LEN];
};

/* Owner fields requested by --by (bpf/lib/aggregate/aggregate.bpf.h). */
enum owner_part {
	OWNER_PID = 1,
	OWNER_COMM = 2,
	OWNER_UID = 4,
	OWNER_CGROUP = 8,
};

/* Every record in the ring buffer starts with this. */
struct event_head {
	__u64 time_ns; /* CLOCK_MONOTONIC */
};

#endif
