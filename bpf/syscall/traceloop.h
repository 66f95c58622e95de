/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A flight recorder: per-CPU segments of slots, of which the oldest are overwritten. */
#ifndef CORETAP_RECORD_H
#define CORETAP_RECORD_H

#include "lib/shared.h"

enum record_kind {
	RECORD_CALL, /* a system call; its texts follow in slots of their own */
	RECORD_TEXT,
};

enum record_flag {
	RECORD_UNFINISHED = 1, /* no result: still going on, or its task was killed in it */
	RECORD_HEADLESS = 2,   /* its start was not seen */
	RECORD_CUT = 4,        /* text: there is more than was taken */
	RECORD_MORE = 8,       /* text: goes on in the next slot */
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

/* Behind the segments: how far each has come. */
struct record_head {
	__u64 next;  /* slots written since tracing began */
	__u64 calls; /* calls in them */
	__u32 busy;
};

/* A process of a recorder has ended in a way that was asked for. */
struct record_process_end {
	struct event_head head;
	__u64 recorder;
	__u32 tgid;
	__u32 code; /* as wait(2) gives it */
	__u32 oom;  /* killed for lack of memory */
	__u32 pad;
	char comm[COMM_LEN];
};

/* Which arguments of a call are strings: a bit each, and this one: they are gone when it ends. */
#define CALL_TEXT_EARLY 0x80

/* Depths at which cgroups may have recorders of their own. */
#define RECORD_LEVELS 16

struct record_slot {
	__u64 seq; /* 1 + its number among all slots of its CPU; anything else: being written */
	__u8 kind;
	__u8 flags;
	__u8 slots;  /* of a call, with its texts */
	__u8 arg;    /* of a text: which argument it is */
	__u32 bytes; /* of a text; of a call its number on this CPU, from 0 */
	union {
		struct recorded_call call;
		char text[RECORD_BYTES];
		struct record_head head;
	};
};

#endif
