// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* smpcalls: functions that CPUs call on other CPUs, and their time. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/aggregate/extreme.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/stack/shared_scratch.bpf.h"
#include "lib/core/since.bpf.h"
#include "lib/core/program.bpf.h"
#include "cpu/smpcalls.h"

OPT(bool, by_pid);
OPT(bool, distributed);

CPU_TABLE(functions, struct smpcalls_key, struct smpcalls_value)
HISTOGRAM(durations, struct smpcalls_key)

/* A call from one CPU to another, from queueing until its function has returned (since 6.4). */
struct call {
	u64 queued;
	struct smpcalls_key key;
	struct task_id owner; /* with --by */
};

/* Records the running task as caller of this function. */
inline_ void caller(void *ctx, u64 function, struct call *c)
{
	c->key.function = function;
	if (stack_kernel)
		c->key.kernel_stack = preemptible_stack_of_kernel(ctx);
	if (owner_parts)
		identify_current(&c->owner);
	if (!by_pid)
		return;
	c->key.pid = current_tgid();
	bpf_get_current_comm(c->key.comm, sizeof(c->key.comm));
}

inline_ void add(struct call *c, bool timed, u64 ns, u64 run_ns)
{
	struct smpcalls_value *v;

	if (distributed) {
		if (timed)
			durations_add_of(&c->key, ns, &c->owner);
		return;
	}
	v = functions_row_of(&c->key, &c->owner);
	if (!v)
		return;
	v->count++;
	if (!timed)
		return;
	v->timed++;
	v->total_ns += ns;
	v->run_ns += run_ns;
	extreme_add(&v->longest, ns);
}

/* By the address of the call's structure, which is in use until the function runs. */
MAP(HASH, calls, 1, u64, struct call);

struct run {
	u64 start; /* 0: none in progress, or not wanted */
	struct call call;
};

CPU_SLOTS(runs, struct run);

TRACING(on_exit, "tp_btf/csd_function_exit")
{
	struct run *r = cpu_slot(&runs);
	u64 now = bpf_ktime_get_ns();

	if (!r || !r->start)
		return 0;
	add(&r->call, true, since(r->call.queued, now), since(r->start, now));
	r->start = 0;
	return 0;
}

TRACING(on_entry, "tp_btf/csd_function_entry")
{
	struct run *r = cpu_slot(&runs);
	struct call *c;
	u64 csd = ctx[1];

	if (!r || !csd) /* NULL: the CPU calls itself */
		return 0;
	c = bpf_map_lookup_elem(&calls, &csd);
	if (!c)
		return 0;
	r->call = *c;
	r->start = bpf_ktime_get_ns();
	bpf_map_delete_elem(&calls, &csd);
	return 0;
}

/* CSD_TYPE(): types above this one do not just run a function (irq_work, wake-ups). */
#define CSD_TYPES 0xf0
#define CSD_TYPE_SYNC 0x10

TRACING(on_queue, "tp_btf/csd_queue_cpu")
{
	struct __call_single_data *csd = (void *)ctx[3];
	u64 address = ctx[3];
	struct call c = {};

	if ((BPF_CORE_READ(csd, node.u_flags) & CSD_TYPES) > CSD_TYPE_SYNC || !keep_current())
		return 0;
	caller(ctx, function_arg(ctx, 2), &c);
	c.queued = bpf_ktime_get_ns();
	return map_put(&calls, &address, &c);
}

/* Before 6.4: the functions that make such calls. One calls the other for a single CPU. */
struct making {
	u64 start;
	u64 depth;
};

TASK_SLOT(struct making);

inline_ int making_starts(void)
{
	struct making *m = wanted_slot();

	if (m && !m->depth++)
		m->start = bpf_ktime_get_ns();
	return 0;
}

inline_ int making_ends(void *ctx, u64 function, bool waits)
{
	struct making *m = current_slot(false);
	struct call c = {};

	if (!m || !m->depth || --m->depth)
		return 0;
	caller(ctx, function, &c);
	add(&c, waits, since(m->start, bpf_ktime_get_ns()), 0);
	return 0;
}

/* ctx[3] is `wait`; flags with SCF_WAIT since 5.12. */
PROGRAM(many_end, "fexit/smp_call_function_many_cond",
	making_ends(ctx, function_arg(ctx, 1), ctx[3] & 1))
PROGRAM(single_end, "fexit/smp_call_function_single",
	making_ends(ctx, function_arg(ctx, 1), (u32)ctx[3]))
PROGRAM(many, "fentry/smp_call_function_many_cond", making_starts())
PROGRAM(single, "fentry/smp_call_function_single", making_starts())

TRACING(async, "fentry/smp_call_function_single_async")
{
	struct call c = {};

	if (!keep_current())
		return 0;
	caller(ctx, (u64)BPF_CORE_READ((struct __call_single_data *)ctx[1], func), &c);
	add(&c, false, 0, 0);
	return 0;
}
