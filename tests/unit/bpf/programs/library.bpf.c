/* Functions of bpf/lib run by the kernel, for tests: each program calls one of them. */
#include "lib/core/coretap.bpf.h"
#include "given.h"

struct given_task given;
struct found_walk found;
struct stack given_stack;
struct stack_party given_party;
struct hist histogram;
struct fine_hist fine_histogram;
__u64 result;
__u32 depth_limit;
char packet[GIVEN_PACKET];
volatile __u64 packet_at; /* a number to the verifier, as in a packet of the kernel */

/* The last message to the loader, and the number of messages. */
struct stack_process last_news;
__u32 news_count;
bool news_full; /* the message is lost */

/* Test-defined tasks with this kernel's layout. All of lib's reads of the running task use this
 * one. */
#define ROOM 2048 /* words */
__u64 task_memory[ROOM], other_memory[ROOM], mm_memory[ROOM], stack_memory[ROOM];
#define TASK ((struct task_struct *)task_memory)
#define OTHER ((struct task_struct *)other_memory)
#define REGISTERS ((struct pt_regs *)(stack_memory + ROOM) - 1)

#define stack_user_depth depth_limit
#define bpf_get_current_task_btf() TASK
#define bpf_get_current_task() ((u64)TASK)
#define bpf_get_current_pid_tgid() ((u64)GIVEN_TGID << 32 | 8)
#define bpf_task_pt_regs(task) ((long)REGISTERS)
#define bpf_probe_read_user(...) (found.reads++, bpf_probe_read_user(__VA_ARGS__))
#define bpf_ringbuf_reserve(ring, size, flags)                                                     \
	(news_full || (size) != sizeof(last_news) ? NULL : (void *)&last_news)
#define bpf_ringbuf_submit(record, flags) (news_count++, (void)(record), (void)(flags))
#undef BPF_CORE_READ_BITFIELD
#undef BPF_CORE_READ_BITFIELD_PROBED
#define BPF_CORE_READ_BITFIELD(task, member) (given.executes)
#define BPF_CORE_READ_BITFIELD_PROBED BPF_CORE_READ_BITFIELD
#undef bpf_core_enum_value_exists
#define bpf_core_enum_value_exists(type, value)                                                    \
	(!given.old_kernel &&                                                                      \
	 __builtin_preserve_enum_value(*(typeof(type) *)value, BPF_ENUMVAL_EXISTS))

#include "lib/aggregate/aggregate.bpf.h"
#include "lib/stack/cpu_walk.bpf.h"
#include "net/ipv6.bpf.h"

/* For programs that get the test's tasks; none is attached. */
#define last_thread_exits(ctx) (given.last_thread)

/* Replaces lib/stack/mapping.bpf.h, which tests/unit/unwind/known_files_test.cpp tests. */
#define CORETAP_MAPPING_BPF_H
static int mapping_find(u64 address);
#include "lib/stack/walk.bpf.h"

static int mapping_find(u64 address)
{
	struct given_mapping *m = &given.mapping;
	struct walk *w = current_walk();

	if (!w || address < m->start || address >= m->end)
		return 0;
	w->search.start = m->start;
	w->search.end = m->end;
	w->search.page = m->page;
	w->search.file = m->inode;
	w->search.vdso = m->inode ? 0 : given.vdso;
	w->search.key = (struct unwind_file_key){.inode = m->inode};
	return 1;
}

#include "lib/stack/stack_counts.bpf.h"

#include "lib/block/block.bpf.h"

/* The content shows whether the request is in progress. */
inline_ bool rq_idle(u64 *slot)
{
	return !*slot;
}

RQ_SLOTS(u64);

#define RUN(name)                                                                                  \
	SEC("raw_tp/test")                                                                         \
	int name(u64 *ctx)

/* A request's address, the new content of its slot. 0: it has no slot, 1: a new one, 2: an existing
 * one. */
RUN(run_request)
{
	u64 *slot = rq_slot_read(ctx[0]), *own;

	own = slot ? slot : rq_slot_take(ctx[0], rq_offset_read(ctx[0]));
	if (!own || (!slot && *own)) /* a new one is empty */
		return 0;
	*own = ctx[1];
	return slot ? 2 : 1;
}

RUN(run_log2)
{
	return log2_u64(ctx[0]);
}

/* A value, its count, the step. */
RUN(run_log2_histogram)
{
	if (ctx[2])
		hist_log2(&histogram, ctx[0], ctx[1], ctx[2]);
	return 0;
}

RUN(run_fine_histogram)
{
	if (ctx[2])
		hist_count_fine(&fine_histogram, ctx[0], ctx[1], ctx[2]);
	return 0;
}

RUN(run_linear_histogram)
{
	if (ctx[2])
		hist_linear(&histogram, ctx[0], ctx[1], ctx[2]);
	return 0;
}

OPT(__u64, waits_step);
SUMS(waits, struct hist)
RUN(run_waits)
{
	struct hist *h = waits_slot();

	if (h)
		hist_log2(h, ctx[0], ctx[1], waits_step);
	return 0;
}

/* Through the scratch buffer, to which the kernel copies a stack. */
RUN(run_kernel_stack)
{
	struct stack *s = cpu_slot(&stack_scratch);

	if (!s)
		return 1;
	*s = given_stack;
	result = ctx[1] ? kernel_stack_key((u32)ctx[0], 0) : kernel_stack_id((long)ctx[0], 0);
	given_stack.depth = s->depth;
	return 0;
}

RUN(run_store)
{
	stack_store(&given_stack, ctx[0]);
	return 0;
}

RUN(run_stored)
{
	return stack_stored(ctx[0], ctx[1]);
}

RUN(run_party)
{
	result = party_hash(&given_party);
	return 0;
}

/* The protocol in the IPv6 header, and the end of the packet. */
RUN(run_ipv6)
{
	struct ipv6_payload p = {.at = 40, .protocol = (u8)ctx[0]};

	packet_at = (u64)packet;
	find_ipv6_payload((const u8 *)packet_at, (u32)ctx[1], &p);
	result = p.at;
	return p.protocol | p.headless << 8;
}

#ifdef __TARGET_ARCH_x86
inline_ void shape_tasks(void)
{
	struct pt_regs *regs = REGISTERS;

	regs->ip = given.registers.ip;
	regs->sp = given.registers.sp;
	regs->bp = given.registers.bp;
	regs->bx = given.registers.bx;
	regs->di = given.registers.di;
	regs->r10 = given.registers.r10;
	regs->cs = given.cs;
	TASK->stack = stack_memory;
	TASK->mm = given.has_mm ? (struct mm_struct *)mm_memory : NULL;
	TASK->flags = given.is_kernel_thread ? PF_KTHREAD : 0;
	TASK->tgid = GIVEN_TGID;
	TASK->self_exec_id = GIVEN_EXECS;
	TASK->parent_exec_id = GIVEN_EXECS - given.executed_before;
	TASK->real_parent = OTHER;
	((struct mm_struct *)mm_memory)->start_stack = GIVEN_STACK_BEGIN;
	OTHER->mm = (struct mm_struct *)mm_memory;
	OTHER->self_exec_id = GIVEN_EXECS;
}

RUN(run_walk)
{
	struct walk *w = current_walk();

	if (!w)
		return 1;
	shape_tasks();
	/* Data of an earlier walk must make no difference. */
	for (u32 i = 0; i < sizeof(*w) / 8; i++)
		((volatile u64 *)w)[i] = 0xa5a5a5a5a5a5a5a5;
	found.reads = 0;
	found.frames = walk_user();
	found.stack = w->stack;
	found.hash = w->hash;
	found.unknown_map = w->unknown_map;
	return 0;
}

/* The kind of rule at an address. */
RUN(run_kind)
{
	struct walk *w = current_walk();
	struct unwind_rule *rule;
	u32 index;

	if (!w)
		return UNWIND_NONE;
	w->program = GIVEN_PROGRAM;
	unwind_begin(w);
	if (!unwind_find_listed(w, ctx[0]))
		return UNWIND_NONE;
	index = unwind_find_rule(w, ctx[0]);
	rule = bpf_map_lookup_elem(&unwind_rules, &index);
	return rule ? rule->cfa : UNWIND_NONE;
}

RUN(run_ask)
{
	struct walk *w = current_walk();

	return w && unwind_ask(w);
}

RUN(run_fork)
{
	u64 tasks[] = {(u64)TASK, (u64)OTHER};

	shape_tasks();
	OTHER->tgid = (u32)ctx[0];
	return unwind_fork_body(tasks);
}

/* By then the count of execs is the new program's. */
RUN(run_exec)
{
	u64 tasks[] = {(u64)TASK};

	shape_tasks();
	TASK->self_exec_id = GIVEN_EXECS + 1;
	return unwind_exec_body(tasks);
}

RUN(run_exit)
{
	u64 tasks[] = {(u64)TASK};

	shape_tasks();
	return unwind_exit_body(tasks);
}

RUN(run_meet)
{
	struct walk *w = current_walk();

	shape_tasks();
	OTHER->tgid = GIVEN_PARENT;
	if (w)
		meet_process(w);
	return 0;
}
#endif
