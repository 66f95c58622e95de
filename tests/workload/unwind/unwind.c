/* Runs in call chains of known names without frame pointers: what happens at the innermost END is
 * reached by 44 functions of all kinds of frames, and these by one of several WAYs.
 * The truth: "stacks", leaf first; "..." stands for any frames, "?" for one. */
#define WL_OWN_MAIN
#include "../workload.h"

#include <dlfcn.h>
#include <linux/sched.h>
#include <ucontext.h>

WL_TEXT("end", end_wanted, "spin", "what happens innermost");
WL_TEXT("way", way_wanted, "main", "how the chain is called");
WL_NUMBER("ms", ms, 300, "time of an end that runs");
WL_NUMBER("times", times, 100, "number of events of an end that counts them");
WL_TEXT("place", place, "here",
	"where the program is: here, namespace (a copy seen only there), deleted");
WL_TEXT("then", then, NULL, "afterwards execute the program again, with this");
WL_FLAG("ibt", ibt, "a library made for indirect branch tracking");
WL_FLAG("placed", placed, "given by itself: it is the copy");
WL_TEXT("first", first, NULL, "given by itself: it was executed again");
WL_TEXT("libraries", libraries, NULL, "of the program by default");
static uint64_t ticks_per_ms, deadline;

typedef void work(void);

/* In assembly, with its table; compilers leave those that follow each other together. */
#define ASM_FUNCTION(name, body)                                                                   \
	__asm__(".text\n"                                                                          \
		".type " #name ", @function\n" #name ":\n"                                         \
		".cfi_startproc\n" body ".cfi_endproc\n"                                           \
		".size " #name ", . - " #name "\n")

/* ---- time without calls ---- */

static inline __attribute__((always_inline)) uint64_t ticks(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
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

WL_FRAME void spin(void)
{
	while (!over())
		;
}

/* ---- the chain ---- */

static volatile size_t hidden = 100;

#define USE(block) __asm__ volatile("" : : "r"(block) : "memory")

/* Kills all registers that a callee saves: above it only the tables know the frame pointers. */
#define BODY_saving                                                                                \
	__asm__ volatile("xor %%ebp, %%ebp" : : : "rbx", "rbp", "r12", "r13", "r14", "r15")
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
	both_k(end);
}

/* ---- libraries ---- */

#ifndef UNWIND_STATIC
static void *open_library(const char *name)
{
	void *library = dlopen(wl_at(libraries, name), RTLD_LAZY | RTLD_LOCAL);

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

/* ---- ends: what is innermost ---- */

static char buffer[1 << 20];
static int wake_pipe[2];
static void *volatile sink;

WL_FRAME void end_sleep(void)
{
	for (uint64_t i = 0; i < times; i++)
		wl_nap_ms(2);
}

WL_FRAME void end_memset(void)
{
	for (int byte = 0; !over(); byte++) {
		memset(buffer, byte, sizeof(buffer));
		USE(buffer);
	}
}

WL_FRAME void end_strlen(void)
{
	memset(buffer, 'x', sizeof(buffer) - 1);
	while (!over()) {
		USE(buffer);
		sink = buffer + strlen(buffer);
	}
}

WL_FRAME void end_vdso(void)
{
	struct timespec t;

	while (!over()) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		USE(&t);
	}
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	fail_if(sigaction(number, &action, NULL), "sigaction");
}

WL_FRAME void on_raise(int)
{
	spin();
}

WL_FRAME void end_raise(void)
{
	handle(SIGUSR1, on_raise, 0);
	raise(SIGUSR1);
	__asm__ volatile("");
}

/* Interrupted at its first instruction: by the byte before that, it would be another function. */
ASM_FUNCTION(before_trap, ".cfi_def_cfa_offset 4096\n"
			  "nop\n");
ASM_FUNCTION(trap_at_start, "ud2\n"
			    "ret\n");
void trap_at_start(void);

WL_FRAME void on_trap(int, siginfo_t *, void *context)
{
	ucontext_t *interrupted = context;

	spin();
	interrupted->uc_mcontext.gregs[REG_RIP] += 2;
}

WL_FRAME void end_trap(void)
{
	handle(SIGILL, (void *)on_trap, SA_SIGINFO);
	trap_at_start();
	__asm__ volatile("");
}

static volatile sig_atomic_t timer_fired;
static timer_t timer;

WL_FRAME void on_timer(int)
{
	spin();
	timer_fired = 1;
}

WL_FRAME void on_first(int)
{
	struct itimerspec soon = {.it_value.tv_nsec = 1000000};

	timer_settime(timer, 0, &soon, NULL);
	while (!timer_fired)
		;
}

WL_FRAME void end_altstack(void)
{
	static char other[1 << 16];
	stack_t stack = {.ss_sp = other, .ss_size = sizeof(other)};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};

	event._sigev_un._tid = wl_tid();
	fail_if(sigaltstack(&stack, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer),
		"timer or stack");
	handle(SIGUSR2, on_timer, SA_ONSTACK);
	handle(SIGUSR1, on_first, 0);
	raise(SIGUSR1);
	__asm__ volatile("");
}

WL_FRAME void on_nothing(int)
{
	__asm__ volatile("");
}

/* Much of its time is the return from a signal. */
WL_FRAME void end_returns(void)
{
	long pid = getpid(), tid = wl_tid();

	handle(SIGUSR1, on_nothing, 0);
	while (!over())
		wl_syscall3(SYS_tgkill, pid, tid, SIGUSR1);
}

#ifndef UNWIND_STATIC
static void *lazy_library(void)
{
	return open_library(ibt ? "unwind_lazy_ibt.so" : "unwind_lazy.so");
}

/* All calls of one function, by its entry of the procedure linkage table. */
WL_FRAME void end_plt(void)
{
	void (*plt_calls)(int) = function_of(lazy_library(), "plt_calls");

	while (!over())
		plt_calls(10000);
}

/* One call each of many functions, which the dynamic linker looks up at that call. */
WL_FRAME void end_lazy(void)
{
	for (;;) {
		void *library = lazy_library();
		work *lazy_calls = function_of(library, "lazy_calls");

		lazy_calls();
		if (over())
			break;
		dlclose(library);
	}
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
	unsigned int variants; /* the number goes to the names */
};

static const struct step ends[] = {
	{"spin", .end = spin, .names = {"spin"}},
	{"sleep", .end = end_sleep, .names = {"...", "end_sleep"}},
	{"memset", .end = end_memset, .names = {"...", "end_memset"}},
	{"strlen", .end = end_strlen, .names = {"...", "end_strlen"}},
	{"vdso", .end = end_vdso, .names = {"...", "end_vdso"}},
	{"raise", .end = end_raise,
	 .names = {"spin", "on_raise", "<signal handler>", "...", "end_raise"}},
	{"trap", .end = end_trap,
	 .names = {"spin", "on_trap", "<signal handler>", "trap_at_start", "end_trap"}},
	{"altstack", .end = end_altstack,
	 .names = {"spin", "on_timer", "<signal handler>", "...", "on_first", "<signal handler>",
		   "...", "end_altstack"}},
	{"returns", .end = end_returns, .names = {"...", "end_returns"}},
#ifndef UNWIND_STATIC
	{"plt", .end = end_plt, .names = {"...", "plt_calls", "end_plt"}},
	{"lazy", .end = end_lazy, .names = {"...", "lazy_calls", "end_lazy"}},
#endif
	{"wake", .end = end_wake, .names = {"...", "end_wake"}},
	{"malloc", .end = end_malloc, .names = {"...", "end_malloc"}},
	{"open", .end = end_open, .names = {"...", "end_open"}},
	{"fork", .end = end_fork, .names = {"spin", "child_spin", "end_fork"}},
	{0},
};

/* ---- ways: what calls the chain ---- */

WL_FRAME void by_main(work *end)
{
	chain(end);
	__asm__ volatile("");
}

WL_FRAME void deep(work *end, int levels)
{
	if (levels)
		deep(end, levels - 1);
	else
		chain(end);
	__asm__ volatile("");
}

WL_FRAME void by_deep(work *end)
{
	deep(end, 200);
	__asm__ volatile("");
}

static work *compare_end;

WL_FRAME int compare(const void *one, const void *other)
{
	work *end = compare_end;

	compare_end = NULL;
	if (end)
		chain(end);
	return *(const int *)one - *(const int *)other;
}

WL_FRAME void by_qsort(work *end)
{
	int numbers[] = {3, 1, 4, 1, 5, 9, 2, 6};

	compare_end = end;
	qsort(numbers, WL_COUNT(numbers), sizeof(numbers[0]), compare);
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

/* A thread that the C library knows nothing of: it ends where the tables say so. */
WL_FRAME void raw_main(work *end)
{
	chain(end);
	__asm__ volatile("");
}

long raw_clone(struct clone_args *args, size_t size, work *end);
ASM_FUNCTION(raw_clone, "mov %rdx, %r8\n"
			"mov $435, %eax\n"
			"syscall\n"
			"test %rax, %rax\n"
			"jz raw_thread\n"
			"ret\n");
ASM_FUNCTION(raw_thread, ".cfi_undefined rip\n"
			 "mov %r8, %rdi\n"
			 "mov $1, %ebp\n"
			 "call raw_main\n"
			 "xor %edi, %edi\n"
			 "mov $60, %eax\n"
			 "syscall\n"
			 "ud2\n");

WL_FRAME void by_clone3(work *end)
{
	static _Alignas(64) char stack[1 << 18];
	static volatile int alive = 1;
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			 CLONE_SYSVSEM | CLONE_CHILD_CLEARTID,
		.child_tid = (uintptr_t)&alive,
		.stack = (uintptr_t)stack,
		.stack_size = sizeof(stack),
	};
	long tid = raw_clone(&args, sizeof(args), end);

	if (tid < 0)
		wl_die(tid == -ENOSYS ? WL_CANNOT : WL_FAILED, "clone3: %s", strerror((int)-tid));
	while (alive)
		wl_nap_ms(5);
}

/* Calls with this value in the register of frame pointers, by the tables' rules. */
void call_with(void (*to)(void (*)(work *), work *), work *end, uintptr_t rbp);
WL_FRAME void chain_again(work *end)
{
	chain(end);
	__asm__ volatile("");
}
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

#ifndef UNWIND_STATIC
typedef void passes_on(void (*call)(work *), work *end);

static void by_bare(work *end, uintptr_t rbp)
{
	void *library = open_library("unwind_bare.so");

	call_with(function_of(library, "bare_call"), end, rbp);
}

static void by_bare_null(work *end)
{
	by_bare(end, 0);
}

static void by_bare_odd(work *end)
{
	by_bare(end, 1);
}

/* As if there were a frame; what it says is wrong. */
static void by_bare_stack(work *end)
{
	uintptr_t frame[2] = {0, (uintptr_t)by_main + 1};

	by_bare(end, (uintptr_t)frame);
	USE(frame);
}

WL_FRAME void by_framed(work *end)
{
	void *library = open_library("unwind_framed.so");

	((passes_on *)function_of(library, "framed_call"))(chain_again, end);
}

/* Each is mapped where the one before it was, and has frames of another size. */
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

/* As a just-in-time compiler writes it: frame pointers, and no tables. */
WL_FRAME void by_jit(work *end)
{
	static const unsigned char code[] = {
		0x55,		  /* push %rbp */
		0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
		0x48, 0x89, 0xf8, /* mov %rdi, %rax */
		0x48, 0x89, 0xf7, /* mov %rsi, %rdi */
		0xff, 0xd0,	  /* call *%rax */
		0x5d,		  /* pop %rbp */
		0xc3,		  /* ret */
	};
	void *page = wl_anonymous(4096);

	memcpy(page, code, sizeof(code));
	can(mprotect(page, 4096, PROT_READ | PROT_EXEC), "executable memory");
	((void (*)(void (*)(work *), work *))page)(chain_again, end);
	munmap(page, 4096);
}

static const struct step ways[] = {
	{"main", by_main, .names = {"by_main", "main"}},
	{"deep", by_deep, .names = {"deep"}},
	{"qsort", by_qsort, .names = {"compare", "...", "by_qsort", "main"}},
	{"thread", by_thread, .names = {"thread_main"}},
	{"clone3", by_clone3, .names = {"raw_main", "raw_thread"}},
#ifndef UNWIND_STATIC
	{"bare-null", by_bare_null, .names = {"chain_again", "bare_call"}},
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

/* ---- other places of the same program ---- */

/* Becomes the copy; it finds this directory by its own name. */
static void move_to_place(int argc, char **argv)
{
	char directory[] = "/tmp/workload-unwind-XXXXXX";
	char **more = calloc((size_t)argc + 4, sizeof(*more));
	int n = 0;

	fail_if(!mkdtemp(directory), directory);
	wl_undo(WL_UNDO_RMDIR, 0, directory, NULL);
	if (!strcmp(place, "namespace")) {
		cannot_if(unshare(CLONE_NEWNS) ||
				  mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
				  mount("none", directory, "tmpfs", 0, NULL),
			  "mount namespace");
		wl_undo(WL_UNDO_UMOUNT, 0, directory, NULL);
	}
	const char *copy = wl_in(directory, "unwind");
	wl_undo(WL_UNDO_UNLINK, 0, copy, NULL);
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	fail_if(from < 0 || to < 0 || !wl_copy(from, to) || close(to), copy);
	for (; n < argc; n++)
		more[n] = argv[n];
	more[n++] = "--placed";
	more[n++] = "--libraries";
	more[n++] = (char *)libraries;
	execv(copy, more);
	wl_die(WL_FAILED, "%s: %m", copy);
}

static void settle(const char *directory)
{
	if (!strcmp(place, "namespace")) {
		wl_undo(WL_UNDO_RMDIR, 0, directory, NULL);
		wl_undo(WL_UNDO_UMOUNT, 0, directory, NULL);
	} else {
		fail_if(unlink(wl_self()) || rmdir(directory), directory);
	}
}

/* The same process with another way. */
static void become_second(void)
{
	const char *ms_text = wl_format("%lu", ms), *times_text = wl_format("%lu", times);
	const char *more[] = {wl_self(),  "--end",
			      end_wanted, "--way",
			      then,	  "--first",
			      way_wanted, "--ms",
			      ms_text,	  "--times",
			      times_text, "--libraries",
			      libraries,  wl_linger_wanted ? "--linger" : NULL,
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
		for (int n = 0; way->go == by_deep && n < 200; n++)
			tell_names(way->names, 1, 0);
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
	char directory[WL_PATH];

	wl_start(argc, argv);
	wl_one_of("place", place, "here namespace deleted");
	snprintf(directory, sizeof(directory), "%s", wl_self());
	*strrchr(directory, '/') = '\0';
	if (!libraries)
		libraries = directory;
	const struct step *end = find(ends, end_wanted);
	const struct step *way = find(ways, way_wanted);
	if (strcmp(place, "here")) {
		if (!placed)
			move_to_place(argc, argv);
		settle(directory);
	}
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
