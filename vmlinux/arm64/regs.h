/* SPDX-License-Identifier: GPL-2.0-only */
/* What depends on the processor, arm64. */
#pragma once

/* arch/arm64/include/uapi/asm/ptrace.h: as bpf/bpf_tracing.h reads them */
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};

/* arch/arm64/include/asm/ptrace.h */
struct pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
	u64 pstate;
	u64 orig_x0;
	s32 syscallno;
};

/* arch/arm64/include/asm/thread_info.h */
struct thread_info {
	unsigned long flags;
	u32 cpu;
};
