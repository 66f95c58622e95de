/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A flight recorder: per-CPU segments of slots, of which the oldest are overwritten. */
#ifndef CORETAP_RECORD_H
#define CORETAP_RECORD_H

#include "lib/core/shared.h"

enum record_kind {
	RECORD_CALL, /* a system call; its texts follow in separate slots */
	RECORD_TEXT,
};

enum record_flag {
	RECORD_UNFINISHED = 1, /* no result: still in progress, or its task was killed */
	RECORD_HEADLESS = 2,   /* its start was not seen */
	RECORD_CUT = 4,        /* text: truncated */
	RECORD_MORE = 8,       /* text: continues in the next slot */
};

#define CALL_ARGS 6
#define RECORD_BYTES 112

struct recorded_call {
	__u64 start_ns; /* 0: not known */
	__u64 end_ns;
	__s64 result;
	__u64 args[CALL_ARGS];
	__u32 tgid;
	__u32 tid;
	__u32 index; /* below CALLS */
	__u32 pad;
	char comm[COMM_LEN];
};

/* After the segments: progress of each. */
struct record_head {
	__u64 next;  /* number of slots written since the start of tracing */
	__u64 calls; /* number of calls in them */
	__u32 busy;
};

/* A process of a recorder has ended in a selected way. */
struct record_process_end {
	struct event_head head;
	__u64 recorder;
	__u32 tgid;
	__u32 code; /* as for wait(2) */
	__u32 oom;  /* killed for lack of memory */
	__u32 pad;
	char comm[COMM_LEN];
};

/* String arguments of a call: a bit each, and this one if they are gone when it ends. */
#define CALL_TEXT_EARLY 0x80

/* Number of depths at which cgroups can have separate recorders. */
#define RECORD_LEVELS 16

struct record_slot {
	__u64 seq; /* 1 + its number among all slots of its CPU; other values: being written */
	__u8 kind;
	__u8 flags;
	__u8 slots;  /* number of slots of a call, with its texts */
	__u8 arg;    /* of a text: index of the argument */
	__u32 bytes; /* of a text; for a call its number on this CPU, from 0 */
	union {
		struct recorded_call call;
		char text[RECORD_BYTES];
		struct record_head head;
	};
};

#endif
