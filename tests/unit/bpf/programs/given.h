/* Inputs and results of the test programs (library.bpf.c). */
#ifndef CORETAP_TESTS_GIVEN_H
#define CORETAP_TESTS_GIVEN_H

#include "lib/core/shared.h"
#include "lib/stack/unwind.h"

#define GIVEN_TGID 7 /* the task whose stack is walked */
#define GIVEN_EXECS 3
#define GIVEN_PARENT 5
#define GIVEN_PROGRAM ((__u64)GIVEN_TGID << 32 | GIVEN_EXECS)
#define GIVEN_STACK_BEGIN 0x7ffe0000
#define GIVEN_CS 0x33
#define GIVEN_PACKET 4096

struct given_registers {
	__u64 ip, sp, bp, bx, di, r10;
};

struct given_mapping {
	__u64 start, end, page, inode;
};

struct given_task {
	struct given_registers registers;
	__u32 cs;
	struct given_mapping mapping; /* the only one in the kernel's tree */
	__u64 vdso;
	bool has_mm, is_kernel_thread, executes;
	bool old_kernel; /* registers are read from the task's stack */
	bool last_thread;
	bool executed_before; /* a program other than its parent's */
};

struct found_walk {
	long frames;
	struct stack stack;
	__u64 hash;
	bool unknown_map;
	__u32 reads; /* of user memory */
};

#endif
