/* Kernel helpers and maps for lib/walk.bpf.h, on the host. */
#define _GNU_SOURCE
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

struct task_struct {
	void *stack;
	void *mm;
	u32 tgid, flags;
	u64 self_exec_id;
};

struct host_maps host_maps;
bool host_old_kernel;
u32 stack_depth = STACK_DEPTH;

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

#define __TARGET_ARCH_x86
#define BPF_CORE_READ(from, member) ((from)->member)
#define bpf_core_enum_value_exists(type, value) (!host_old_kernel)
#include "lib/walk.bpf.h"

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
	if (map == &unwind_processes)
		return *(const u64 *)key == host_program() ? m->process : NULL;
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
	running.mm = task->has_mm ? &running : NULL;
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

bool host_ask(void)
{
	return unwind_ask(current_walk());
}
