/* Spins in a known chain of a process whose mappings, or whose stack's pages, are unusual. */
#define WL_OWN_MAIN
#include "workload.h"

#include <ucontext.h>

#define STACK_BYTES (1 << 20)
#define HALF 20 /* calls of each kind */
#define USE(room) __asm__ volatile("" : : "r"(room) : "memory")

WL_NUMBER("ms", ms, 400, "CPU time in the chain");
WL_NUMBER("mappings", mappings, 0, "executable mappings");
WL_FLAG("remap", remap, "and one of them changes every millisecond");
WL_TEXT("stack", stack_wanted, "own",
	"own; of its pages deep in the chain dropped, or swapped out to a file");
WL_NUMBER("children", children, 0, "fork this many that each go through the chain");
static char *code, *stack;
static ucontext_t caller, callee;

static char *map_stack(void)
{
	char name[] = "/tmp/workload-mapper-XXXXXX";

	if (strcmp(stack_wanted, "file"))
		return wl_anonymous(STACK_BYTES);
	int file = must(mkstemp(name), name);
	fail_if(unlink(name) || ftruncate(file, STACK_BYTES), name);
	return wl_map(STACK_BYTES, MAP_SHARED, file);
}

/* Each is a mapping of its own, since the pages between are not executable. */
static void map_code(void)
{
	code = mmap(NULL, (mappings + 1) * 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cannot_if(code == MAP_FAILED, "mmap");
	for (uint64_t i = 0; i < mappings; i++)
		can(mprotect(code + i * 8192, 4096, PROT_READ | PROT_EXEC), "mprotect");
}

/* The pages of the callers' frames, from the second one above on, are taken away. */
static void drop_callers(void)
{
	char *here = __builtin_frame_address(0);
	char *from = (char *)((uintptr_t)here & ~UINT64_C(4095)) + 8192;
	size_t size = (size_t)(stack + STACK_BYTES - from);

	fail_if(!strcmp(stack_wanted, "dropped") && madvise(from, size, MADV_DONTNEED),
		"MADV_DONTNEED");
	if (!strcmp(stack_wanted, "file")) {
		unsigned char resident[STACK_BYTES / 4096];

		cannot_if(msync(stack, STACK_BYTES, MS_SYNC) || madvise(from, size, MADV_PAGEOUT) ||
				  mincore(from, size, resident),
			  "MADV_PAGEOUT");
	}
}

WL_FRAME void mapper_spin(void)
{
	uint64_t end = wl_clock(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000;

	for (uint64_t i = 0; wl_clock(CLOCK_THREAD_CPUTIME_ID) < end; i++) {
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
	wl_start(argc, argv);
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
	wl_finish();
	return WL_OK;
}
