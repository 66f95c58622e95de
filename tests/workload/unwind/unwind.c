/* Runs in call chains of known names without frame pointers: the innermost function END is reached
 * through 44 functions with all kinds of frames, and these by one of several WAYs. The truth:
 * "stacks", leaf first; "..." matches any frames, "?" one. */
#define WL_OWN_MAIN
#include "../workload.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <ucontext.h>

WL_TEXT("end", end_wanted, "spin", "what happens innermost");
WL_TEXT("way", way_wanted, "main", "how the chain is called");
WL_NUMBER("ms", ms, 300, "time of an end that runs");
WL_NUMBER("times", times, 100, "number of events of an end that counts them");
WL_NUMBER("mappings", mappings, 0, "more executable mappings");
WL_FLAG("memory", in_memory, "runs from memory that has no name");
WL_TEXT("then", then, NULL, "afterwards execute the program again, with this");
WL_FLAG("ibt", ibt, "a library made for indirect branch tracking");
WL_TEXT("first", first, NULL, "given by itself: it was executed again");
static char directory[WL_PATH]; /* of the program and the libraries */
static uint64_t ticks_per_ms, deadline;

typedef void work(void);

/* In assembly, with its table; compilers keep adjacent ones together. */
#define ASM_FUNCTION(name, body)                                                                   \
	__asm__(".text\n"                                                                          \
		".type " #name ", @function\n" #name ":\n"                                         \
		".cfi_startproc\n" body ".cfi_endproc\n"                                           \
		".size " #name ", . - " #name "\n")

/* ---- time without calls ---- */

static inline __attribute__((always_inline)) uint64_t ticks(void)
{
#ifdef __x86_64__
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
#else
	uint64_t now;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
	return now;
#endif
}

static inline __attribute__((always_inline)) bool over(void)
{
	return ticks() >= deadline;
}

static void begin(uint64_t for_ms)
{
	deadline = ticks() + for_ms * ticks_per_ms;
}

static void measure_ticks(void)
{
	uint64_t start = wl_now(), from = ticks();

	while (wl_now() - start < WL_NSEC / 100)
		;
	ticks_per_ms = (ticks() - from) * (WL_NSEC / 1000) / (wl_now() - start);
}

#ifdef __aarch64__
static char *volatile chain_top; /* above the frames of the chain */
#endif

WL_FRAME void spin(void)
{
	while (!over()) {
#ifdef __aarch64__
		/* Kernels mark pages as old, and processors without a hardware access flag cannot
		 * read them then until the program has. */
		char here;

		for (volatile char *at = &here; at < chain_top; at += 4096)
			(void)*at;
#endif
	}
}

/* ---- the chain ---- */

static volatile size_t hidden = 100;

#define USE(block) __asm__ volatile("" : : "r"(block) : "memory")

/* Clobbers all callee-saved registers: above it only the tables give the frame pointers. GCC never
 * uses x29 for another purpose: there, the function just has no frame record. */
#ifdef __x86_64__
#define BODY_saving                                                                                \
	__asm__ volatile("xor %%ebp, %%ebp" : : : "rbx", "rbp", "r12", "r13", "r14", "r15")
#else
#define BODY_saving                                                                                \
	__asm__ volatile(""                                                                        \
			 :                                                                         \
			 :                                                                         \
			 : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28")
#endif
#define BODY_vla                                                                                   \
	char block[hidden];                                                                        \
	USE(block)
#define BODY_aligned                                                                               \
	_Alignas(64) char block[192];                                                              \
	USE(block)
#define BODY_both                                                                                  \
	_Alignas(128) char block[128];                                                             \
	char more[hidden];                                                                         \
	USE(block);                                                                                \
	USE(more)

#define DEFINE(kind, name, next)                                                                   \
	WL_FRAME void name(work *end)                                                              \
	{                                                                                          \
		BODY_##kind;                                                                       \
		next(end);                                                                         \
		__asm__ volatile("");                                                              \
	}
#define NAME(kind, name, next) #name,

#define GROUP(LINK, x, next)                                                                       \
	LINK(saving, saving_##x, next)                                                             \
	LINK(vla, vla_##x, saving_##x)                                                             \
	LINK(aligned, aligned_##x, vla_##x)                                                        \
	LINK(both, both_##x, aligned_##x)
#define CHAIN(LINK)                                                                                \
	GROUP(LINK, a, call_end)                                                                   \
	GROUP(LINK, b, both_a)                                                                     \
	GROUP(LINK, c, both_b)                                                                     \
	GROUP(LINK, d, both_c)                                                                     \
	GROUP(LINK, e, both_d)                                                                     \
	GROUP(LINK, f, both_e)                                                                     \
	GROUP(LINK, g, both_f)                                                                     \
	GROUP(LINK, h, both_g)                                                                     \
	GROUP(LINK, i, both_h)                                                                     \
	GROUP(LINK, j, both_i)                                                                     \
	GROUP(LINK, k, both_j)

WL_FRAME void call_end(work *end)
{
	end();
	__asm__ volatile("");
}

CHAIN(DEFINE)

static const char *const chain_names[] = {"call_end", CHAIN(NAME)};

static inline __attribute__((always_inline)) void chain(work *end)
{
#ifdef __aarch64__
	char here;

	chain_top = &here;
#endif
	both_k(end);
}

/* ---- libraries ---- */

#ifndef UNWIND_STATIC
static void *open_library(const char *name)
{
	void *library = dlopen(wl_at(directory, name), RTLD_LAZY | RTLD_LOCAL);

	if (!library)
		wl_die(WL_FAILED, "%s", dlerror());
	return library;
}

static void *function_of(void *library, const char *name)
{
	void *function = dlsym(library, name);

	if (!function)
		wl_die(WL_FAILED, "%s", dlerror());
	return function;
}
#endif

/* ---- ends: the innermost functions ---- */

static char *code;
static jmp_buf way_back;
static int wake_pipe[2];
static void *volatile sink;

WL_FRAME void end_sleep(void)
{
	for (uint64_t i = 0; i < times; i++)
		wl_nap_ms(2);
}

/* Each is a separate mapping, since the pages between are not executable. */
static void map_code(void)
{
	code = mmap(NULL, (mappings + 1) * 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cannot_if(code == MAP_FAILED, "mmap");
	for (uint64_t i = 0; i < mappings; i++)
		can(mprotect(code + i * 8192, 4096, PROT_READ | PROT_EXEC), "mprotect");
}

/* One of them changes every few milliseconds. */
WL_FRAME void end_remap(void)
{
	for (uint64_t i = 0; !over(); i++) {
		workload_spin(1000000);
		mprotect(code + i % mappings * 8192, 4096, PROT_READ);
		mprotect(code + i % mappings * 8192, 4096, PROT_READ | PROT_EXEC);
	}
}

/* Drops the callers' frames. */
WL_FRAME void drop(uintptr_t from, uintptr_t to)
{
	fail_if(madvise((void *)from, to - from, MADV_DONTNEED), "madvise");
	spin();
	longjmp(way_back, 1);
}

WL_FRAME void drop_callers(int more, uintptr_t end)
{
	char room[700];

	USE(room);
	if (more)
		drop_callers(more - 1, end);
	else
		drop(((uintptr_t)room | 4095) + 1, end & ~UINT64_C(4095));
	USE(room);
}

WL_FRAME void end_dropped(void)
{
	if (!setjmp(way_back))
		drop_callers(20, (uintptr_t)__builtin_frame_address(0));
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	fail_if(sigaction(number, &action, NULL), "sigaction");
}

/* Interrupted at its first instruction: the byte before that belongs to another function. */
ASM_FUNCTION(before_trap, ".cfi_def_cfa_offset 4096\n"
			  "nop\n");
#ifdef __x86_64__
#define TRAP "ud2\n"
#else
#define TRAP ".inst 0\n"
#endif
ASM_FUNCTION(trap_at_start, TRAP "ret\n");
void trap_at_start(void);

WL_FRAME void on_trap(int, siginfo_t *, void *context)
{
	ucontext_t *interrupted = context;

	spin();
#ifdef __x86_64__
	interrupted->uc_mcontext.gregs[REG_RIP] += 2;
#else
	interrupted->uc_mcontext.pc += 4;
#endif
}

WL_FRAME void end_trap(void)
{
	handle(SIGILL, (void *)on_trap, SA_SIGINFO);
	trap_at_start();
	__asm__ volatile("");
}

WL_FRAME void on_nothing(int)
{
	__asm__ volatile("");
}

/* Spends much of its time in the return from a signal. */
WL_FRAME void end_returns(void)
{
	long pid = getpid(), tid = wl_tid();

	handle(SIGUSR1, on_nothing, 0);
	while (!over())
		wl_syscall3(SYS_tgkill, pid, tid, SIGUSR1);
}

#ifndef UNWIND_STATIC
/* All calls of one function, through its PLT entry. */
WL_FRAME void end_plt(void)
{
	void *library = open_library(ibt ? "unwind_lazy_ibt.so" : "unwind_lazy.so");
	void (*plt_calls)(int) = function_of(library, "plt_calls");

	while (!over())
		plt_calls(10000);
}
#endif

WL_FRAME void end_wake(void)
{
	for (uint64_t i = 0; i < times; i++) {
		wl_nap_ms(2);
		fail_if(write(wake_pipe[1], "x", 1) != 1, "pipe");
	}
}

WL_FRAME void end_malloc(void)
{
	for (uint64_t i = 0; i < times; i++) {
		wl_nap_ms(2);
		sink = malloc(1000);
	}
}

WL_FRAME void end_open(void)
{
	for (uint64_t i = 0; i < times; i++) {
		wl_nap_ms(2);
		close(open("/dev/null", O_RDONLY | O_CLOEXEC));
	}
}

WL_FRAME void child_spin(void)
{
	begin(ms);
	spin();
	_exit(0);
}

WL_FRAME void end_fork(void)
{
	for (uint64_t i = 0; i < times; i++) {
		pid_t pid = wl_fork();

		if (pid == 0)
			child_spin();
		fail_if(wl_reap(pid), "a child failed");
	}
}

struct step {
	const char *name;
	void (*go)(work *end); /* of a way */
	work *end;
	const char *names[10];
	unsigned int variants; /* number appended to the names */
};

static const struct step ends[] = {
	{"spin", .end = spin, .names = {"spin"}},
	{"sleep", .end = end_sleep, .names = {"...", "end_sleep"}},
	{"remap", .end = end_remap, .names = {"...", "end_remap"}},
	{"dropped", .end = end_dropped, .names = {"...", "end_dropped"}},
	{"trap", .end = end_trap,
	 .names = {"spin", "on_trap", "<signal handler>", "trap_at_start", "end_trap"}},
	{"returns", .end = end_returns, .names = {"...", "end_returns"}},
#ifndef UNWIND_STATIC
	{"plt", .end = end_plt, .names = {"...", "plt_calls", "end_plt"}},
#endif
	{"wake", .end = end_wake, .names = {"...", "end_wake"}},
	{"malloc", .end = end_malloc, .names = {"...", "end_malloc"}},
	{"open", .end = end_open, .names = {"...", "end_open"}},
	{"fork", .end = end_fork, .names = {"spin", "child_spin", "end_fork"}},
	{0},
};

/* ---- ways: callers of the chain ---- */

WL_FRAME void by_main(work *end)
{
	chain(end);
	__asm__ volatile("");
}

WL_FRAME void *thread_main(void *end)
{
	chain((work *)end);
	return NULL;
}

WL_FRAME void by_thread(work *end)
{
	wl_threads(1, thread_main, (void *)end, 0);
}

/* Calls with this value in the frame pointer register, described by the tables. */
void call_with(void (*to)(void (*)(work *), work *), work *end, uintptr_t frame);
WL_FRAME void chain_again(work *end)
{
	chain(end);
	__asm__ volatile("");
}
#ifdef __x86_64__
ASM_FUNCTION(call_with, "push %rbp\n"
			".cfi_adjust_cfa_offset 8\n"
			".cfi_offset rbp, -16\n"
			"mov %rdx, %rbp\n"
			"mov %rdi, %rax\n"
			"lea chain_again(%rip), %rdi\n"
			"call *%rax\n"
			"pop %rbp\n"
			".cfi_adjust_cfa_offset -8\n"
			".cfi_restore rbp\n"
			"ret\n");
#define FRAME_RECORD
#else
ASM_FUNCTION(call_with, "stp x29, x30, [sp, #-16]!\n"
			".cfi_adjust_cfa_offset 16\n"
			".cfi_offset x29, -16\n"
			".cfi_offset x30, -8\n"
			"mov x29, x2\n"
			"mov x3, x0\n"
			"adr x0, chain_again\n"
			"blr x3\n"
			"ldp x29, x30, [sp], #16\n"
			".cfi_adjust_cfa_offset -16\n"
			".cfi_restore x29\n"
			".cfi_restore x30\n"
			"ret\n");
/* Where frame pointers have led to a caller, only its own one shows where its frame is. */
#define FRAME_RECORD __attribute__((optimize("no-omit-frame-pointer")))
#endif

#ifndef UNWIND_STATIC
typedef void passes_on(void (*call)(work *), work *end);

static void by_bare(work *end, uintptr_t frame)
{
	void *library = open_library("unwind_bare.so");

	call_with(function_of(library, "bare_call"), end, frame);
}

static void by_bare_odd(work *end)
{
	by_bare(end, 1);
}

/* Looks like a frame, but its contents are wrong. */
static void by_bare_stack(work *end)
{
	uintptr_t frame[2] = {0, (uintptr_t)by_main + 1};

	by_bare(end, (uintptr_t)frame);
	USE(frame);
}

FRAME_RECORD WL_FRAME void by_framed(work *end)
{
	void *library = open_library("unwind_framed.so");

	((passes_on *)function_of(library, "framed_call"))(chain_again, end);
}

/* Each is mapped at the address of the previous one, and has frames of another size. */
WL_FRAME void by_dlopen(work *end)
{
	for (int i = 0; i < 6; i++) {
		void *library = open_library(wl_format("unwind_reuse_%d.so", i));

		begin(ms / 6);
		((passes_on *)function_of(library, wl_format("reuse_%d_call", i)))(chain_again,
										   end);
		dlclose(library);
	}
}
#endif

/* Like code of a just-in-time compiler: frame pointers, and no tables. */
FRAME_RECORD WL_FRAME void by_jit(work *end)
{
#ifdef __x86_64__
	static const unsigned char code[] = {
		0x55,		  /* push %rbp */
		0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
		0x48, 0x89, 0xf8, /* mov %rdi, %rax */
		0x48, 0x89, 0xf7, /* mov %rsi, %rdi */
		0xff, 0xd0,	  /* call *%rax */
		0x5d,		  /* pop %rbp */
		0xc3,		  /* ret */
	};
#else
	static const uint32_t code[] = {
		0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
		0x910003fd, /* mov x29, sp */
		0xaa0003e3, /* mov x3, x0 */
		0xaa0103e0, /* mov x0, x1 */
		0xd63f0060, /* blr x3 */
		0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
		0xd65f03c0, /* ret */
	};
#endif
	void *page = wl_anonymous(4096);

	memcpy(page, code, sizeof(code));
	can(mprotect(page, 4096, PROT_READ | PROT_EXEC), "executable memory");
	__builtin___clear_cache(page, (char *)page + sizeof(code));
	((void (*)(void (*)(work *), work *))page)(chain_again, end);
	munmap(page, 4096);
}

static const struct step ways[] = {
	{"main", by_main, .names = {"by_main", "main"}},
	{"thread", by_thread, .names = {"thread_main"}},
#ifndef UNWIND_STATIC
	{"bare-odd", by_bare_odd, .names = {"chain_again", "bare_call"}},
	{"bare-stack", by_bare_stack, .names = {"chain_again", "bare_call"}},
	{"framed", by_framed, .names = {"chain_again", "framed_call", "by_framed", "main"}},
	{"dlopen", by_dlopen, .names = {"chain_again", "reuse_%u_call", "by_dlopen", "main"},
	 .variants = 6},
#endif
	{"jit", by_jit, .names = {"chain_again", "?", "by_jit", "main"}},
	{0},
};

static const struct step *find(const struct step *all, const char *name)
{
	for (const struct step *s = all; s->name; s++)
		if (!strcmp(s->name, name))
			return s;
	wl_die(WL_USAGE, "not known here: %s", name);
}

/* ---- the same program from memory, and again ---- */

static void become_copy(char **argv)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = memfd_create("unwind", MFD_CLOEXEC);

	fail_if(from < 0 || to < 0 || !wl_copy(from, to), "copy");
	fexecve(to, argv, environ);
	wl_die(WL_FAILED, "fexecve: %m");
}

/* The same process with another way. */
static void become_second(void)
{
	const char *ms_text = wl_format("%lu", ms), *times_text = wl_format("%lu", times);
	const char *more[] = {wl_self(),  "--end",    end_wanted,
			      "--way",	  then,	      "--first",
			      way_wanted, "--ms",     ms_text,
			      "--times",  times_text, wl_linger_wanted ? "--linger" : NULL,
			      NULL};

	execv("/proc/self/exe", (char **)more);
	wl_die(WL_FAILED, "exec: %m");
}

/* ---- the truth ---- */

static void tell_names(const char *const *names, size_t count, unsigned int variant)
{
	for (size_t i = 0; i < count && names[i]; i++) {
		char name[64];

		snprintf(name, sizeof(name), names[i], variant);
		wl_str(NULL, name);
	}
}

static void tell_stacks(const struct step *end, const struct step *way)
{
	for (unsigned int i = 0; i < (way->variants ? way->variants : 1); i++) {
		wl_open(NULL, '[');
		tell_names(end->names, WL_COUNT(end->names), 0);
		tell_names(chain_names, WL_COUNT(chain_names), 0);
		tell_names(way->names, WL_COUNT(way->names), i);
		wl_close(']');
	}
}

WL_FRAME void *reader_main(void *arg)
{
	char byte;

	while (read(wake_pipe[0], &byte, 1) == 1)
		;
	return arg;
}

int main(int argc, char **argv)
{
	wl_start(argc, argv);
	snprintf(directory, sizeof(directory), "%s", wl_self());
	*strrchr(directory, '/') = '\0';
	const struct step *end = find(ends, end_wanted);
	const struct step *way = find(ways, way_wanted);
	if (in_memory && strncmp(wl_self(), "/memfd:", 7))
		become_copy(argv);
	prctl(PR_SET_NAME, "unwind"); /* not a descriptor number */
	if (mappings)
		map_code();
	measure_ticks();
	if (end->end == end_wake) {
		wl_pipe(wake_pipe);
		wl_thread(reader_main, NULL);
	}
	if (!first)
		wl_ready();

	begin(ms);
	way->go(end->end);
	if (then)
		become_second();

	wl_open("stacks", '[');
	tell_stacks(end, way);
	if (first)
		tell_stacks(end, find(ways, first));
	wl_close(']');
	wl_finish();
	return WL_OK;
}
