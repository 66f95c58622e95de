/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel programs and the loader agree on, in every tool. */
#ifndef CORETAP_SHARED_H
#define CORETAP_SHARED_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define COMM_LEN 16

/* Why an event is not in the output. Output is counted where it is written. */
enum ledger_cause {
	LEDGER_FILTERED,      /* excluded by the user's filters */
	LEDGER_LOST,          /* ring buffer full */
	LEDGER_UNTRACKED,     /* a map was full */
	LEDGER_UNMATCHED,     /* its start or its end was not seen */
	LEDGER_TRUNCATED,     /* shown, but shortened */
	LEDGER_STACK_FAILED,  /* shown, but without its stack */
	LEDGER_STACK_CUT,     /* shown, but its user stack ends too early */
	LEDGER_STACK_GUESSED, /* shown, but frames of its user stack were guessed */
	LEDGER_OVERWRITTEN,   /* in a flight recorder, before the dump */
	LEDGER_MISSED,        /* the kernel skipped the program; it keeps that count itself */
	LEDGER_UNJUDGED,      /* a filter's expression read what was not there */
	LEDGER_CAUSES
};

/* One per CPU, on its own cache line, read through mmap. */
struct ledger {
	__u64 count[16];
};

#define HIST_SLOTS 64

/*
 * Slot n counts values v with 2^n <= v < 2^(n+1), in steps; slot 0 also 0. Of a linear one n <= v <
 * n+1; its last slot also all above.
 */
struct hist {
	__u64 slots[HIST_SLOTS];
	__u64 total;  /* of the values, in units */
	__u64 named;  /* 1: the text of its key was sent */
	__u64 pad[6]; /* whole cache lines: one struct per CPU */
};

/*
 * The largest value of an interval (bpf/lib/extreme.bpf.h): in the upper bits the interval's
 * number, below them the value. Two, as one interval is read while the next one is counted.
 */
#define EXTREME_BITS 48

struct extreme {
	__u64 slots[2];
};

/* What the shared options -p -t -u --comm --name -c --not-pid --not-comm and `-- COMMAND` ask for.
 */
struct task_filter {
	__u8 on; /* any of the below */
	__u8 by_tgid;
	__u8 by_tid;
	__u8 by_uid;
	__u8 by_comm;
	__u8 by_name;
	__u8 by_cgroup;
	__u8 follow;   /* new children of a wanted process are wanted */
	__u8 not_tgid; /* by_tgid: these processes are not wanted, all others are */
	__u8 not_comm;
	__u8 pad[6];
	__u64 cgroup;                /* id of a cgroup v2; its descendants match too */
	__u64 name_first, name_last; /* bits of the first and last bytes of parts of names */
};

/* The bytes of all parts of names that --name asks for, a bit for each. */
#define NAME_BITS 64

#define STACK_DEPTH 127

/* Why a walk of a user stack ended. */
enum stack_end {
	STACK_END_OPEN,       /* frame pointers: the outermost frame tells whether it is whole */
	STACK_END_WHOLE,      /* where the program or the thread begins */
	STACK_END_DEPTH,      /* as many frames as are asked for */
	STACK_END_NOT_READY,  /* frame pointers, as there are no tables of this process yet */
	STACK_END_NO_MAPPING, /* an address outside all known code */
	STACK_END_NO_CFI,     /* code that has no unwind information, nor a frame pointer */
	STACK_END_NO_MEMORY,  /* code whose tables have no room */
	STACK_END_OTHER_RULE, /* unwind information that the tables cannot express */
	STACK_END_UNREADABLE,
	STACK_END_BACKWARDS, /* a caller's frame below the callee's */
	STACK_END_EXITING,   /* the task has given up its memory */
	STACK_END_LEAF,      /* no walk is wanted */
	STACK_ENDS
};

/* Set in a frame that a signal came upon: it is no return address. */
#define STACK_EXACT (1ULL << 63)

/*
 * Set in a frame of a file that the loader knows: the frame is no address then, but the file's
 * number above a place in its code (struct unwind_mapping: bias). It means the same in all
 * processes, and after their end.
 */
#define STACK_IN_FILE (1ULL << 62)
#define STACK_PLACE_BITS 46
#define STACK_PLACE_MASK ((1ULL << STACK_PLACE_BITS) - 1)
#define STACK_FILES 65536 /* numbers of files; 0 is none */

struct stack {
	__u16 depth;
	__u8 end;     /* enum stack_end */
	__u8 guessed; /* frames that only a frame pointer led to, where tables should have */
	__u32 image;  /* of a user stack: what its addresses mean, STACK_IMAGE(); 0: it has none */
	__u64 ip[STACK_DEPTH];
};

enum stack_state {
	STACK_TASK,
	STACK_RUNNABLE, /* left the CPU though it could run on: preempted rather than blocked */
	STACK_IDLE,     /* the idle task, or what interrupted it */
	STACK_IRQ,      /* an interrupt; the task is only what it came upon */
	STACK_SOFTIRQ,
};

/* A task in a sum: a task that ran or blocked, one that woke another. */
struct stack_party {
	__u64 kernel; /* key in `stacks`; 0: none */
	__u64 user;
	__u32 tgid; /* as the loader's pid namespace shows them */
	__u32 tid;
	__u32 state;   /* enum stack_state */
	__u32 waiting; /* off the CPU still, when tracing ended */
	char comm[COMM_LEN];
};

/*
 * Kept by a hash of the parties, who follow it and are compared too: the task, who woke it, who
 * woke that one, and so on; the last ones may be empty.
 */
struct stack_sum {
	__u64 total_ns;
	__u64 count;
};

enum stack_process_news {
	STACK_PROCESS_MET,     /* its user stack was taken for the first time */
	STACK_PROCESS_CHANGED, /* it runs code that the loader does not know of */
	STACK_PROCESS_FORKED,  /* its parent is known, and it has the parent's memory */
};

/*
 * A process comes by other programs with exec, and by other code at the same addresses with dlclose
 * and dlopen: the count of the one and of the other, from 1 on.
 */
#define STACK_IMAGE(program, generation) ((__u32)(program) << 16 | (__u16)(generation))

#define STACK_PROCESS 0xfffffffffffffffdULL /* no other record begins with it */

struct stack_process {
	__u64 mark;
	__u32 tgid;
	__u32 forked_from; /* its parent, while it runs the parent's program; else 0 */
	__u64 program; /* process by its number in the first pid namespace, and count of execs */
	__u64 stack_begin; /* of the program's memory: /proc/PID/stat tells whether it still runs */
	__u32 news;
	__u32 pad;
};

/* What the command line says to trace, by how its programs learn which of all it is. */
enum target_kind {
	TARGET_KERNEL,     /* functions of the kernel, by kprobes */
	TARGET_USER,       /* functions of programs, USDT probes, by uprobes */
	TARGET_TRACEPOINT, /* raw tracepoints */
	TARGET_EVENT,      /* tracepoints by perf events */
	TARGET_KINDS
};

/* In the place of its number in a program of which each target has a copy. */
#define TARGET_MARK 0x7a51c0de

/* Calls of what is traced that a task may be in at once (traced_calls.bpf.h); a power of two. */
#define CALL_LEVELS 32

/* Text of any length: where it is in its record, and how long it is. */
struct text {
	__u16 at;
	__u16 bytes;
};

/* What the text of a file's path is (bpf/lib/path.bpf.h). */
enum path_kind {
	PATH_KIND_WHOLE, /* components, the last first, each with a terminator */
	PATH_KIND_CUT,   /* the same; those towards the root are missing */
	PATH_KIND_NAME,  /* a name: it is in no directory */
};

/* A file: inodes' numbers are used again, with another generation. */
struct file_id {
	__u64 inode;
	__u32 generation;
	__u32 dev; /* as the kernel writes it */
};

/* Text of the row of an aggregate with this key (bpf/lib/row_text.bpf.h); it follows. */
#define ROW_TEXT_KEY 64

struct row_text {
	char key[ROW_TEXT_KEY]; /* zeros behind it */
	__u32 kind;             /* enum path_kind */
	struct text text;
};

/*
 * System calls by index: the native table's numbers, then those of the table for 32-bit callers.
 * The last of each half stands for all numbers that no table has.
 */
#define CALLS_COMPAT 512
#define CALLS_OTHER (CALLS_COMPAT - 1)
#define CALLS (2 * CALLS_COMPAT)

/* Code of a process (bpf/lib/user_code.bpf.h), for the loader to name. */
struct user_code {
	__u64 address;     /* 0: not known */
	__u64 stack_begin; /* of the program's memory, as in struct stack_process */
	__u32 pid;
	__u32 image; /* another one after each exec */
};

/* Page frames from first to before end. */
struct pfn_range {
	__u64 first;
	__u64 end;
};

/* The most pieces that --node and --zone may ask for. */
#define ZONE_RANGES 64

/* Addresses of the kernel's code, from begin to before end; 0: not known. */
struct code_range {
	__u64 begin;
	__u64 end;
};

/* Who does or owns something, with the numbers of the loader's pid namespace. */
struct task_id {
	__u64 cgroup;
	__u32 pid;
	__u32 tid;
	__u32 uid;
	__u32 known; /* 0: no task is known; the rest says nothing */
	char comm[COMM_LEN];
};

/* What --by asks of whom rows of an aggregate are (bpf/lib/aggregate.bpf.h). */
enum owner_part {
	OWNER_PID = 1,
	OWNER_COMM = 2,
	OWNER_UID = 4,
	OWNER_CGROUP = 8,
};

/* Every record through the ring buffer begins so. */
struct event_head {
	__u64 time_ns; /* CLOCK_MONOTONIC */
};

#endif
