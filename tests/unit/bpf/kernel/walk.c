/* Kernel helpers and maps for lib/walk.bpf.h, on the host. */
#define _GNU_SOURCE /* NOLINT: process_vm_readv() */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "host.h"
#include "walk.h"

typedef __u64 u64;
typedef __s64 s64;
typedef __u32 u32;
typedef __u16 u16;
typedef __u8 u8;

struct pt_regs {
	u64 r10, bx, bp, di, ip, cs, sp;
};

#define STACK_BYTES 16384

struct mm_struct {
	unsigned long start_stack;
};

struct task_struct {
	void *stack;
	struct mm_struct *mm;
	u32 tgid, flags;
	u64 self_exec_id, parent_exec_id;
	bool in_execve;
	struct task_struct *real_parent;
};

struct host_maps host_maps;
bool host_old_kernel;
u32 stack_depth = STACK_DEPTH;

struct stack_process host_news;
u32 host_news_count;
bool host_news_full;

static struct mm_struct memory = {.start_stack = 0x7ffe0000};
static struct task_struct running = {.tgid = 7, .self_exec_id = 3};
static char running_stack[STACK_BYTES] __attribute__((aligned(16)));
static u32 reads;

static struct pt_regs *registers(void)
{
	return (struct pt_regs *)(running_stack + STACK_BYTES) - 1;
}

static void *cpu_slot(void *slot)
{
	return slot;
}

static struct task_struct *current_task(void)
{
	return &running;
}

static struct task_struct *bpf_get_current_task_btf(void)
{
	return &running;
}

static long bpf_task_pt_regs(struct task_struct *task)
{
	(void)task;
	return (long)registers();
}

static u64 bpf_get_current_pid_tgid(void)
{
	return (u64)running.tgid << 32 | 8;
}

/* All or nothing, as the kernel does it: what is not there is filled with zeros. */
static long bpf_probe_read_user(void *to, u32 bytes, const void *from)
{
	struct iovec here = {.iov_base = to, .iov_len = bytes};
	struct iovec there = {.iov_base = (void *)from, .iov_len = bytes};

	reads++;
	if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes)
		return 0;
	memset(to, 0, bytes);
	return -EFAULT;
}

static __attribute__((noinline)) void *bpf_map_lookup_elem(void *map, const void *key);
static int mapping_find(u64 address); /* the kernel's tree */

#define __TARGET_ARCH_x86 /* NOLINT: as the kernel programs are compiled */
#define READ_1(from, member) ((from)->member)
#define READ_2(from, member, next) ((from)->member->next)
#define READ_BY(one, two, chosen, ...) chosen
#define BPF_CORE_READ(from, ...) READ_BY(__VA_ARGS__, READ_2, READ_1)(from, __VA_ARGS__)
#define bpf_core_enum_value_exists(type, value) (!host_old_kernel)
#include "lib/walk.bpf.h"

static int mapping_find(u64 address)
{
	const struct host_maps *m = &host_maps;
	struct walk *w = current_walk();

	for (u32 i = 0; i < m->tree_count; i++) {
		const struct host_mapping *t = &m->tree[i];

		if (address < t->start || address >= t->end)
			continue;
		w->search.start = t->start;
		w->search.end = t->end;
		w->search.page = t->page;
		w->search.file = t->inode;
		w->search.vdso = t->inode ? 0 : m->vdso;
		w->search.key = (struct unwind_file_key){.inode = t->inode};
		return 1;
	}
	return 0;
}

static bool last_thread;
static int events;

static bool last_thread_exits(const u64 *ctx)
{
	(void)ctx;
	return last_thread;
}

static u32 task_tgid(struct task_struct *task)
{
	return task->tgid;
}

static u32 current_tgid(void)
{
	return running.tgid;
}

static void *bpf_ringbuf_reserve(void *ring, u64 bytes, u64 flags)
{
	(void)ring;
	(void)flags;
	if (bytes != sizeof(host_news) || host_news_full)
		return NULL;
	/* What was there before does not matter. */
	memset(&host_news, 0xa5, sizeof(host_news));
	return &host_news;
}

static void bpf_ringbuf_submit(void *record, u64 flags)
{
	(void)record;
	(void)flags;
	host_news_count++;
}

static long bpf_map_update_elem(void *map, const void *key, const void *value, u64 flags);
static long bpf_map_delete_elem(void *map, const void *key);

#undef CORETAP_PROCESS_BPF_H
#include "lib/process.bpf.h"

/* The other entries of unwind_processes, and one of stack_known_mms. */
static struct {
	u64 program;
	struct unwind_process process;
} others[4];
static u64 known_mm, known_program;

static struct unwind_process *other(u64 program)
{
	for (u32 i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].program == program)
			return &others[i].process;
	return NULL;
}

static long bpf_map_update_elem(void *map, const void *key, const void *value, u64 flags)
{
	(void)flags;
	if (map == &stack_known_mms) {
		known_mm = *(const u64 *)key;
		known_program = *(const u64 *)value;
		return 0;
	}
	for (u32 i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (others[i].program)
			continue;
		others[i].program = *(const u64 *)key;
		others[i].process = *(const struct unwind_process *)value;
		return 0;
	}
	return -E2BIG;
}

static long bpf_map_delete_elem(void *map, const void *key)
{
	u64 program = *(const u64 *)key;

	(void)map;
	if (program == host_program())
		host_maps.process = NULL;
	for (u32 i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].program == program)
			others[i].program = 0;
	return 0;
}

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	const struct host_maps *m = &host_maps;
	u32 index = *(const u32 *)key;

	if (map == &unwind_rules)
		return index < m->rule_count ? &m->rules[index] : NULL;
	if (map == &unwind_pages)
		return index < m->page_count ? &m->pages[index] : NULL;
	if (map == &unwind_mappings)
		return index < m->mapping_count ? &m->mappings[index] : NULL;
	if (map == &unwind_rows)
		return index < m->chunk_count ? m->chunks[index] : NULL;
	if (map == &unwind_processes && *(const u64 *)key == host_program())
		return m->process;
	if (map == &unwind_processes)
		return other(*(const u64 *)key);
	if (map == &unwind_files) {
		const struct unwind_file_key *of = key;

		for (u32 i = 0; i < m->file_count; i++)
			if (!memcmp(&m->files[i].key, of, sizeof(*of)))
				return &m->files[i].file;
		return NULL;
	}
	if (map == &stack_known_mms)
		return known_mm && *(const u64 *)key == known_mm ? &known_program : NULL;
	return index == 0 ? map : NULL; /* a chunk */
}

u64 host_program(void)
{
	return program_of(running.tgid, running.self_exec_id);
}

void host_walk_user(const struct host_task *task, struct host_walk *found)
{
	struct pt_regs *regs = registers();
	struct walk *w = current_walk();

	memset(regs, 0, sizeof(*regs));
	regs->ip = task->registers.ip;
	regs->sp = task->registers.sp;
	regs->bp = task->registers.bp;
	regs->bx = task->registers.bx;
	regs->di = task->registers.di;
	regs->r10 = task->registers.r10;
	regs->cs = task->cs;
	running.stack = running_stack;
	running.mm = task->has_mm ? &memory : NULL;
	running.in_execve = task->executes;
	running.flags = task->is_kernel_thread ? PF_KTHREAD : 0;
	/* What a walk before has left must make no difference. */
	memset(w, 0xa5, sizeof(*w));
	unwind_tables = true;
	reads = 0;
	found->frames = walk_user();
	found->stack = w->stack;
	found->hash = w->hash;
	found->unknown_map = w->unknown_map;
	found->reads = reads;
}

u64 host_hash(const u64 *ips, u32 count)
{
	u64 hash = 0;

	for (u32 i = 0; i < count; i++)
		hash = walk_hash(hash, ips[i]);
	return hash;
}

bool host_ask(void)
{
	return unwind_ask(current_walk());
}

void host_forked(u32 tgid)
{
	struct task_struct child = {
		.mm = &memory, .tgid = tgid, .self_exec_id = running.self_exec_id};
	u64 ctx[] = {(u64)(unsigned long)&running, (u64)(unsigned long)&child};

	unwind_tables = true;
	unwind_fork(ctx);
}

/* The count of execs is the next one's by then. */
void host_executed(void)
{
	struct task_struct after = running;
	u64 ctx[] = {(u64)(unsigned long)&after};

	after.self_exec_id++;
	unwind_exec(ctx);
}

void host_exited(bool all_threads)
{
	u64 ctx[] = {(u64)(unsigned long)&running};

	last_thread = all_threads;
	unwind_exit(ctx);
}

void host_meet(bool executed_before)
{
	static struct task_struct parent = {.tgid = 5};

	running.real_parent = &parent;
	running.parent_exec_id = executed_before ? running.self_exec_id - 1 : running.self_exec_id;
	meet_process(current_walk());
}

struct unwind_process *host_process(u64 program)
{
	return program == host_program() ? host_maps.process : other(program);
}

void host_forget(void)
{
	memset(others, 0, sizeof(others));
	known_mm = 0;
	host_news_count = 0;
	host_news_full = false;
}
