/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls of the architecture: numbers (CALL_*; CALL32_*: of 32-bit programs), and
 *
 * call_arguments(): the caller's six arguments. The same at entry and exit, except for calls that
 *   change all registers (exec, a return from a signal).
 * call_number(), call_address(): of the call, and of the instruction after it.
 * running_compat(): is the running task's call from the table of 32-bit programs? On x86, 64-bit
 *   programs can use it, too.
 * saved_call_number(), saved_compat(): the same of registers that must be read by a helper.
 * call_left_with(): has the task that left a call with this error not returned to user space since?
 *
 * Contexts: the running task, outside of interrupts, at system calls.
 */
#ifndef CORETAP_CALLS_BPF_H
#define CORETAP_CALLS_BPF_H

#if defined(__TARGET_ARCH_x86)
#include "lib/syscall/x86_calls.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "lib/syscall/arm64_calls.bpf.h"
#else
#error "there is no table of system calls of this architecture"
#endif

#endif
