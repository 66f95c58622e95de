/* SPDX-License-Identifier: GPL-2.0-only */
/* What depends on the processor, x86-64. */
#pragma once

/*
 * arch/x86/include/asm/ptrace.h: whole, because saved_regs() finds it by its size below
 * the top of the kernel stack.
 */
struct pt_regs {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	u16 cs; /* before 6.9 a whole word, whose low bytes these are */
	unsigned long flags;
	unsigned long sp;
	unsigned long ss;
};

/* arch/x86/include/asm/thread_info.h */
struct thread_info {
	u32 status;
	u32 cpu;
};
