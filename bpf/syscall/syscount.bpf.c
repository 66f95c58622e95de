// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* syscount: number of system calls and time in them, by call or by process. */
#include "lib/core/filter.bpf.h"
#include "lib/core/parent.bpf.h"
#include "lib/aggregate/extreme.bpf.h"
#include "lib/aggregate/percentile.bpf.h"
#include "syscall/call_object.bpf.h"
#include "syscall/interrupted.bpf.h"
#include "syscall/syscount.h"

OPT(bool, by_process);
OPT(bool, by_call_too); /* with by_process */
OPT(bool, by_object);
OPT(bool, timed);
OPT(bool, percentiles); /* with timed */
OPT(bool, failures);
OPT(__u32, only_errno);
OPT(bool, some_calls);
const volatile __u8 wanted_calls[CALLS] = {};

/* The current call of a task; without --latency or --objects only one interrupted by a signal. */
struct call {
	u64 start; /* 0: not known */
	u32 index;
	u32 interrupted;      /* ERESTART...; 0: not interrupted */
	struct pt_regs *regs; /* if interrupted: its registers, and the address of the call */
	u64 address;
	u64 begun; /* with --objects: `object` is of this call */
	struct call_object object;
};

struct slots {
	struct syscount_counts calls[CALLS];
};

TASK_SLOT(struct call);
CPU_TABLE(calls, struct syscount_key, struct syscount_counts)
SUMS(calls, struct slots)

inline_ struct syscount_counts *counts_of(u32 index, u64 ns, const struct call *c)
{
	struct slots *s;

	if (by_process || by_object || owner_parts || percentiles) {
		struct syscount_key key = {};

		if (!by_process || by_call_too)
			key.call = index;
		if (by_process) {
			key.pid = current_tgid();
			process_comm(key.comm);
		}
		if (percentiles)
			key.bucket = fine_bucket(ns);
		if (by_object) {
			key.object = c ? c->object.kind : SYSCOUNT_UNKNOWN;
			if (c)
				key.file = c->object.file;
		}
		return calls_row(&key);
	}
	s = calls_slot();
	if (!s)
		return NULL;
	barrier_var(index);
	return &s->calls[index & (CALLS - 1)];
}

/* Atomic, as a task can be preempted here on some kernels (PREEMPT_RT). */
inline_ void add(u32 index, u64 ns, bool failed, const struct call *call)
{
	struct syscount_counts *c = counts_of(index, ns, call);

	if (!c)
		return;
	if (timed) {
		extreme_add(&c->longest, ns);
		extreme_add(&c->shortest, since(ns, SYSCOUNT_MOST_NS));
		__sync_fetch_and_add(&c->total_ns, ns);
		if (failed)
			__sync_fetch_and_add(&c->errors, 1);
	}
	__sync_fetch_and_add(&c->count, 1);
}

/* At its end: the slot with the object of the call, also of one that began before tracing. */
inline_ struct call *with_object(struct pt_regs *regs, s32 number)
{
	struct call *c = current_slot(true);

	if (!c)
		return NULL;
	if (!c->begun) {
		/* A return from a signal handler has changed the registers. */
		if (number == NO_CALL)
			return NULL;
		find_object(&c->object, regs);
	}
	c->begun = 0;
	return c;
}

inline_ bool wanted_call(u32 index)
{
	barrier_var(index);
	return !some_calls || wanted_calls[index & (CALLS - 1)];
}

inline_ bool wanted_result(long result)
{
	if (only_errno)
		return result == -(long)only_errno;
	return !failures || call_failed(result);
}

inline_ bool wanted_task(void)
{
	return keep_current_parent() && keep_current();
}

TRACING(on_enter, "tp_btf/sys_enter")
{
	u32 index = call_index((s32)ctx[1], call_is_compat((void *)ctx[0]));
	struct call *c;

	if (call_restarts(index)) {
		c = current_slot(false);
		if (c && c->interrupted)
			return 0;
	}
	if (!wanted_call(index) || !wanted_task())
		return 0;
	c = current_slot(true);
	if (!c)
		return 0;
	/* Continued after an interruption by a signal without a handler. */
	if (c->interrupted && c->index == index && c->start)
		return 0;
	c->interrupted = 0;
	c->index = index;
	if (by_object) {
		find_object(&c->object, (void *)ctx[0]);
		c->begun = 1;
	}
	c->start = bpf_ktime_get_ns();
	return 0;
}

TRACING(on_exit, "tp_btf/sys_exit")
{
	struct pt_regs *regs = (void *)ctx[0];
	long result = (long)ctx[1];
	struct call *c = NULL;
	u64 ns = 0, start;
	s32 number;
	u32 index;

	/* Most calls do not fail. */
	if (failures && !timed && !call_failed(result))
		return 0;
	number = call_number(regs);
	index = call_index(number, call_is_compat(regs));
	if (call_of_parent(index, result))
		return 0;
	if (call_restarts(index)) {
		c = current_slot(false);
		if (c && c->interrupted) {
			c->interrupted = 0;
			index = c->index;
		}
	}
	if (!wanted_call(index))
		return 0;
	if (timed) {
		c = current_slot(false);
		if (!c || !c->start)
			return 0;
	} else if (!wanted_task()) {
		return 0;
	}
	if (call_interrupted(result) && number != NO_CALL) {
		c = current_slot(true);
		if (c) {
			c->index = index;
			c->interrupted = -result;
			c->regs = regs;
			c->address = call_address(regs);
		}
		return 0;
	}
	if (timed) {
		start = c->start;
		c->start = 0;
		c->interrupted = 0;
	}
	/* A return from a signal handler has no result: the register is the interrupted code's. */
	if (number == NO_CALL ? failures : !wanted_result(result))
		return 0;
	if (timed)
		ns = since(start, bpf_ktime_get_ns());
	if (by_object)
		c = with_object(regs, number);
	add(index, ns, number != NO_CALL && call_failed(result), c);
	return 0;
}

/* A handler determines how the call that its signal interrupted ends. */
TRACING(on_signal, "tp_btf/signal_deliver")
{
	struct k_sigaction *action = (void *)ctx[2];
	struct call *c;
	u32 error;
	u64 start;

	if (!signal_has_handler(action))
		return 0;
	c = current_slot(false);
	if (!c || !c->interrupted || !call_left_with(c->regs, c->interrupted, c->address))
		return 0;
	error = c->interrupted;
	start = c->start;
	c->interrupted = 0;
	c->start = 0;
	if (!call_ended_by(action, error) || !wanted_result(-EINTR))
		return 0;
	c->begun = 0;
	add(c->index, timed ? since(start, bpf_ktime_get_ns()) : 0, true, c);
	return 0;
}
