/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What compiled expressions (src/expression) read and write. */
#ifndef CORETAP_EXPRESSION_H
#define CORETAP_EXPRESSION_H

#include "lib/shared.h"

/* What a place hands over. Which members are filled in is the loader's wish (expression_uses). */
struct expression_in {
	__u64 arguments[6]; /* of a function or system call */
	__u64 result;       /* of one that returns */
	__u64 context;      /* address of the tracepoint's record, or of the registers */
	__u64 pid;          /* of the process */
	__u64 tid;
	__u64 uid;
	__u64 gid;
	__u64 cpu;
	__u64 task;
	__u64 latency;  /* of a call that returns, in ns, and */
	__u64 entry[6]; /* its arguments as it was entered: where the word asks for them */
	char comm[COMM_LEN];
	__u64 record; /* the program's own pointer to the tracepoint's record: it can be read
			 through */
};

/* Members that cost something to find out. */
enum expression_use {
	EXPRESSION_USES_ARGUMENTS = 1,
	EXPRESSION_USES_IDS = 2,  /* pid, tid */
	EXPRESSION_USES_USER = 4, /* uid, gid */
	EXPRESSION_USES_COMM = 8,
	EXPRESSION_USES_CONTEXT = 16,
	EXPRESSION_USES_TASK = 32,
	EXPRESSION_USES_CPU = 64,
	EXPRESSION_USES_RECORD = 128,
};

#define EXPRESSION_VALUES 12

/* Targets whose entry and return belong together are below that. */
#define EXPRESSION_PAIRED 4096

/* The values of one record; text follows, at places that the loader has chosen. */
struct expression_out {
	__u64 word;   /* number of the command line's word; the loader has its use */
	__u64 faults; /* a bit for each value: what it reads is not there */
	__u64 cut;    /* text that is longer than its room */
	__u64 values[EXPRESSION_VALUES];
};

/* What a filter comes to. */
enum expression_verdict {
	EXPRESSION_NO,
	EXPRESSION_YES,
	EXPRESSION_FAULT, /* it reads what is not there */
};

/* Room for generated instructions, in the place of the mark and what follows it. */
#define EXPRESSION_MARK 0x7e5c0ade
#define EXPRESSION_ROOM 1024
#define EXPRESSION_FILTER 1
#define EXPRESSION_OUTPUT 2
/* A filter that needs no stack, within the program itself: its room is in each of them. */
#define EXPRESSION_SHORT 3
#define EXPRESSION_SHORT_ROOM 128

#endif
