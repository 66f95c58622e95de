// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* traceloop: the last system calls of cgroups or processes. */
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/process_end.bpf.h"
#include "syscall/interrupted.bpf.h"
#include "syscall/record.bpf.h"
#include "lib/syscall/syscall.bpf.h"
#include "lib/core/text.bpf.h"

#define TEXT_SLOTS 4 /* per argument */

OPT(bool, some_calls);
const volatile __u8 wanted_calls[CALLS] = {};
/* String arguments of each call (CALL_TEXT_EARLY). */
const volatile __u8 call_texts[CALLS] = {};
OPT(__u64, min_ns); /* only calls that take this long */
OPT(bool, by_cgroup);
OPT(__u32, cgroup_levels);
const volatile __u32
	cgroup_level[RECORD_LEVELS] = {}; /* levels of cgroups with a recorder; deepest first */
OPT(__u32, own_tgid);                     /* the tracer itself is excluded */
/* Process exits to report to the loader. */
OPT(bool, tell_ends);
OPT(bool, end_by_oom);
const volatile __u8 end_signals[128] = {};
const volatile __u8 end_codes[256] = {};

/* The current call of a task. */
struct call {
	u64 start; /* 0: none */
	u64 recorder;
	u64 args[CALL_ARGS];
	u32 index;
	s32 bytes; /* of the text; negative: none */
	char text[RECORD_BYTES];
};

TASK_SLOT(struct call);

inline_ bool wanted_call(u32 index)
{
	barrier_var(index);
	return !some_calls || wanted_calls[index & (CALLS - 1)];
}

/* With min_ns: the first system call that was seen. A call that began before it is at least as old.
 */
volatile u64 first_seen;

inline_ void first_sight(void)
{
	if (min_ns && !first_seen)
		first_seen = bpf_ktime_get_ns();
}

inline_ bool long_enough(u64 start)
{
	return !min_ns || since(start, bpf_ktime_get_ns()) >= min_ns;
}

inline_ u8 texts_of(u32 index)
{
	barrier_var(index);
	return call_texts[index & (CALLS - 1)];
}

/* The recorder for the running task's calls; false: they are not recorded. */
inline_ bool recorder_of_current(u64 *recorder, bool counted)
{
	*recorder = 0;
	if (own_tgid && current_tgid() == own_tgid)
		return false;
	if (by_cgroup) {
		bool found = false;

		for (u32 i = 0; i < RECORD_LEVELS && i < cgroup_levels && !found; i++) {
			*recorder = current_cgroup_at(cgroup_level[i]);
			found = *recorder && bpf_map_lookup_elem(&recorders, recorder);
		}
		if (!found)
			return false;
	}
	if (!filter.on)
		return true;
	return counted ? keep_task(current_task()) : filter_matches(current_task());
}

TRACING(on_enter, "tp_btf/sys_enter")
{
	struct pt_regs *regs = (void *)ctx[0];
	bool compat = call_is_compat(regs);
	u32 index = call_index((s32)ctx[1], compat);
	struct call *c;
	u64 recorder;
	u8 texts;

	first_sight();
	if (!wanted_call(index) || !recorder_of_current(&recorder, true))
		return 0;
	c = current_slot(true);
	if (!c)
		return 0;
	c->recorder = recorder;
	c->index = index;
	call_arguments(regs, compat, c->args);
	c->bytes = -1;
	texts = texts_of(index);
	/* Only for execve and execveat: one string of these. */
	if (texts & CALL_TEXT_EARLY) {
		u64 from = texts & 1 ? c->args[0] : c->args[1];

		c->bytes = bpf_probe_read_user_str(c->text, sizeof(c->text), (void *)from);
	}
	c->start = bpf_ktime_get_ns();
	return 0;
}

inline_ struct record_slot *text_slot(struct recording *r, u8 arg)
{
	struct record_slot *slot = record_slot(r);

	if (slot) {
		slot->kind = RECORD_TEXT;
		slot->flags = 0;
		slot->arg = arg;
	}
	return slot;
}

inline_ void record_string(struct recording *r, u8 arg, u64 from)
{
	for (int i = 0; i < TEXT_SLOTS; i++) {
		struct record_slot *slot;
		long n;

		slot = text_slot(r, arg);
		if (!slot)
			return;
		n = bpf_probe_read_user_str(slot->text, sizeof(slot->text),
					    (void *)(from + i * (RECORD_BYTES - 1)));
		slot->bytes = n > 0 ? n - 1 : 0;
		if (n < 0)
			slot->flags = RECORD_CUT;
		else if (n == RECORD_BYTES)
			slot->flags = i == TEXT_SLOTS - 1 ? RECORD_CUT : RECORD_MORE;
		record_done(r, slot);
		if (n != RECORD_BYTES)
			return;
	}
}

/* Records the call in `c`, and its strings. */
inline_ void record_call(struct call *c, s64 result, u8 flags)
{
	struct recording r;
	struct record_slot *first;
	u8 texts = texts_of(c->index);

	if (!record_begin(&r, c->recorder))
		return;
	first = record_slot(&r);
	if (first) {
		first->kind = RECORD_CALL;
		first->flags = flags;
		first->bytes = (u32)r.head->calls;
		first->call.start_ns = c->start;
		first->call.end_ns = bpf_ktime_get_ns();
		first->call.result = result;
		for (int i = 0; i < CALL_ARGS; i++)
			first->call.args[i] = c->args[i];
		first->call.tgid = current_tgid();
		first->call.tid = current_tid();
		first->call.index = c->index;
		bpf_get_current_comm(first->call.comm, sizeof(first->call.comm));
		if (texts & CALL_TEXT_EARLY) {
			struct record_slot *slot;

			slot = c->bytes >= 0 ? text_slot(&r, texts & 1 ? 0 : 1) : NULL;
			if (slot) {
				__builtin_memcpy(slot->text, c->text, sizeof(slot->text));
				slot->bytes = c->bytes > 0 ? c->bytes - 1 : 0;
				if (c->bytes == RECORD_BYTES)
					slot->flags = RECORD_CUT;
				record_done(&r, slot);
			}
		} else if (texts) {
			for (u8 i = 0; i < CALL_ARGS; i++)
				if (texts >> i & 1 && c->args[i])
					record_string(&r, i, c->args[i]);
		}
		first->slots = r.slots;
		asm volatile("" ::: "memory");
		*(volatile u64 *)&first->seq = r.at + 1;
	}
	record_end(&r);
}

TRACING(on_exit, "tp_btf/sys_exit")
{
	struct pt_regs *regs = (void *)ctx[0];
	struct call *c = current_slot(false);
	u8 flags = 0;

	first_sight();
	if (!c || !c->start) {
		bool compat = call_is_compat(regs);
		u32 index = call_index(call_number(regs), compat);
		u64 recorder;

		/* It started before tracing, or is a new task's return from its parent's fork. */
		if (!wanted_call(index) || !recorder_of_current(&recorder, false))
			return 0;
		if (min_ns && (call_of_parent(index, ctx[1]) || !long_enough(first_seen)))
			return filtered();
		c = current_slot(true);
		if (!c)
			return 0;
		c->index = index;
		c->recorder = recorder;
		c->bytes = -1;
		call_arguments(regs, compat, c->args);
		flags = RECORD_HEADLESS;
	} else if (!long_enough(c->start)) {
		c->start = 0;
		return filtered();
	}
	record_call(c, (s64)ctx[1], flags);
	c->start = 0;
	return 0;
}

inline_ bool wanted_end(u32 code, bool oom)
{
	u32 signal = code & 0x7f, status = code >> 8 & 0xff;

	if (end_by_oom && oom)
		return true;
	if (signal)
		return end_signals[signal];
	return end_codes[status];
}

TRACING(on_task_exit, "tp_btf/sched_process_exit")
{
	struct task_struct *t = (void *)ctx[0];
	struct call *c = task_slot(t);
	struct record_process_end *end;
	u64 recorder;
	bool oom;

	if (c && c->start) {
		if (long_enough(c->start))
			record_call(c, 0, RECORD_UNFINISHED);
		else
			count(LEDGER_FILTERED);
		c->start = 0;
	}
	if (!tell_ends)
		return 0;
	if (!last_thread_exits(ctx))
		return 0;
	oom = t->signal->oom_mm; /* remains set for a task killed for lack of memory */
	if (!wanted_end(t->exit_code, oom) || !recorder_of_current(&recorder, false) ||
	    !process_ends(ctx))
		return 0;
	end = emit_begin(sizeof(*end));
	if (!end)
		return 0;
	end->head.time_ns = bpf_ktime_get_ns();
	end->recorder = recorder;
	end->tgid = task_tgid(t);
	end->code = t->exit_code;
	end->oom = oom;
	task_comm(t->group_leader, end->comm);
	bpf_ringbuf_submit(end, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* Calls in progress when the loader reads: a call, and its text if recorded at its start. */
SEC("iter/task")
int on_task(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct record_slot slot[2] = {};
	struct call *c;

	if (!t)
		return 0;
	c = task_slot(t);
	if (!c || !c->start || !long_enough(c->start))
		return 0;
	slot[0].seq = c->recorder;
	slot[0].kind = RECORD_CALL;
	slot[0].flags = RECORD_UNFINISHED;
	slot[0].slots = 1;
	slot[0].call.start_ns = c->start;
	for (int i = 0; i < CALL_ARGS; i++)
		slot[0].call.args[i] = c->args[i];
	slot[0].call.tgid = task_tgid(t);
	slot[0].call.tid = task_tid(t);
	slot[0].call.index = c->index;
	task_comm(t, slot[0].call.comm);
	if (c->bytes > 0) {
		slot[0].slots = 2;
		slot[1].kind = RECORD_TEXT;
		slot[1].arg = texts_of(c->index) & 1 ? 0 : 1;
		slot[1].flags = c->bytes == RECORD_BYTES ? RECORD_CUT : 0;
		slot[1].bytes = c->bytes - 1;
		__builtin_memcpy(slot[1].text, c->text, sizeof(slot[1].text));
	}
	bpf_seq_write(ctx->meta->seq, slot, sizeof(slot));
	return 0;
}
