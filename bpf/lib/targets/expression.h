/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inputs and outputs of compiled expressions (src/expression). */
#ifndef CORETAP_EXPRESSION_H
#define CORETAP_EXPRESSION_H

#include "lib/core/shared.h"

/* Inputs of an expression. The loader selects the members (expression_uses). */
struct expression_in {
	__u64 arguments[6]; /* of a function or system call */
	__u64 result;       /* of a returning function or system call */
	__u64 context;      /* address of the tracepoint's record, or of the registers */
	__u64 pid;          /* of the process */
	__u64 tid;
	__u64 uid;
	__u64 gid;
	__u64 cpu;
	__u64 task;
	__u64 latency;  /* of a returning call, in ns, and */
	__u64 entry[6]; /* its arguments at entry: if the target asks for them */
	char comm[COMM_LEN];
	__u64 record; /* the program's own pointer to the tracepoint's
		       * record: loads through it are allowed */
};

/* Members that take time to fill in. */
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

/* Targets whose entry and return are matched have numbers below this. */
#define EXPRESSION_PAIRED 4096

/* The values of one record; text follows, at offsets chosen by the loader. */
struct expression_out {
	__u64 word;   /* number of the command line's word; for the loader */
	__u64 faults; /* a bit for each value: reading its memory failed */
	__u64 cut;    /* a bit for each text that was truncated */
	__u64 values[EXPRESSION_VALUES];
};

/* Result of a filter. */
enum expression_verdict {
	EXPRESSION_NO,
	EXPRESSION_YES,
	EXPRESSION_FAULT, /* it failed to read memory */
};

/* Room for generated instructions, in place of the mark and the following instructions. */
#define EXPRESSION_MARK 0x7e5c0ade
#define EXPRESSION_ROOM 1024
#define EXPRESSION_FILTER 1
#define EXPRESSION_OUTPUT 2
/* A filter that needs no stack, within the program itself: each program has its own room. */
#define EXPRESSION_SHORT 3
#define EXPRESSION_SHORT_ROOM 128

#endif
