/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Spins in a known chain of a process whose mappings, or whose stack's pages, are unusual. */
#include "workload.h"

#include <ucontext.h>

#define STACK_BYTES (1 << 20)
#define HALF 20 /* calls of each kind */
#define USE(room) __asm__ volatile("" : : "r"(room) : "memory")

static uint64_t ms = 400, mappings, children;
static const char *stack_wanted = "own";
static bool remap;
static char *code;
static char *stack;
static ucontext_t caller, callee;

static char *map_stack(void)
{
	char name[] = "/tmp/workload-mapper-XXXXXX";
	int file = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *at;

	if (!strcmp(stack_wanted, "file")) {
		file = mkstemp(name);
		if (file < 0 || unlink(name) || ftruncate(file, STACK_BYTES))
			wl_die(WL_FAILED, "%s: %m", name);
		flags = MAP_SHARED;
	}
	at = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, flags, file, 0);
	if (at == MAP_FAILED)
		wl_die(WL_FAILED, "mmap: %m");
	return at;
}

/* Each is a mapping of its own, since the pages between are not executable. */
static void map_code(void)
{
	code = mmap(NULL, (mappings + 1) * 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		wl_die(WL_CANNOT, "mmap: %m");
	for (uint64_t i = 0; i < mappings; i++)
		if (mprotect(code + i * 8192, 4096, PROT_READ | PROT_EXEC))
			wl_die(WL_CANNOT, "%llu mappings: %m", (unsigned long long)i);
}

/* The pages of the callers' frames, from the second one above on, are taken away. */
static void drop_callers(void)
{
	char *here = __builtin_frame_address(0);
	char *from = (char *)((uintptr_t)here & ~UINT64_C(4095)) + 8192;
	size_t size = (size_t)(stack + STACK_BYTES - from);

	if (!strcmp(stack_wanted, "dropped") && madvise(from, size, MADV_DONTNEED))
		wl_die(WL_FAILED, "MADV_DONTNEED: %m");
	if (!strcmp(stack_wanted, "file")) {
		unsigned char resident[STACK_BYTES / 4096];

		if (msync(stack, STACK_BYTES, MS_SYNC) || madvise(from, size, MADV_PAGEOUT) ||
		    mincore(from, size, resident))
			wl_die(WL_CANNOT, "MADV_PAGEOUT: %m");
	}
}

WL_FRAME void mapper_spin(void)
{
	uint64_t end = wl_now() + ms * 1000000;

	for (uint64_t i = 0; wl_now() < end; i++) {
		workload_spin(1000000);
		if (remap && mappings) {
			mprotect(code + i % mappings * 8192, 4096, PROT_READ);
			mprotect(code + i % mappings * 8192, 4096, PROT_READ | PROT_EXEC);
		}
	}
}

WL_FRAME void mapper_inner(int n)
{
	char room[700];

	USE(room);
	if (n) {
		mapper_inner(n - 1);
	} else {
		if (stack)
			drop_callers();
		mapper_spin();
		if (stack) { /* the way back is gone */
			wl_line_begin();
			wl_finish();
			_exit(WL_OK);
		}
	}
	USE(room);
}

WL_FRAME void mapper_outer(int n)
{
	char room[700];

	USE(room);
	if (n)
		mapper_outer(n - 1);
	else
		mapper_inner(HALF - 1);
	USE(room);
}

static void begin_chain(void)
{
	mapper_outer(HALF - 1);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"ms", WL_NUM, &ms, "MS", "time in the chain"},
		{"mappings", WL_NUM, &mappings, "N", "executable mappings"},
		{"remap", WL_FLAG, &remap, NULL, "and one of them changes every millisecond"},
		{"stack", WL_STR, &stack_wanted, "KIND",
		 "own; dropped (its pages deep in the chain are gone), file (they are swapped "
		 "out)"},
		{"children", WL_NUM, &children, "N",
		 "fork this many that each go through the chain"},
		{0},
	};

	wl_start(argc, argv, "mapper", "Spins in a process with unusual mappings or stacks.", opts);
	if (mappings)
		map_code();
	wl_ready();
	for (uint64_t i = 0; i < children; i++) {
		pid_t pid = wl_fork();

		if (!pid) {
			begin_chain();
			_exit(WL_OK);
		}
		wl_reap(pid);
	}
	if (!strcmp(stack_wanted, "own")) {
		begin_chain();
	} else {
		stack = map_stack();
		getcontext(&callee);
		callee.uc_stack.ss_sp = stack;
		callee.uc_stack.ss_size = STACK_BYTES;
		callee.uc_link = &caller;
		makecontext(&callee, begin_chain, 0);
		swapcontext(&caller, &callee);
	}
	wl_line_begin();
	wl_finish();
	return WL_OK;
}
