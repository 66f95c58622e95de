/* Calls functions within each other in known ways, in several threads, and counts the calls. */
#define WL_OWN_MAIN
#include "workload.h"

#include <setjmp.h>

#define SIGNAL_STACK 65536

WL_NUMBER("rounds", rounds, 10, "times that each thread does all");
WL_NUMBER("threads", threads, 1, "threads that do so at once");
WL_NUMBER("depth", depth, 5, "calls of the recursion");
WL_NUMBER("sleep-us", sleep_us, 0, "how long an inner call sleeps");
WL_NUMBER("wide", wide, 0, "leaves of one more call in each round");
WL_FLAG("jump", jump, "leave two calls by longjmp in each round");
WL_FLAG("signal", by_signal, "a handler on the same stack runs within a call in each round");
WL_FLAG("alternate", alternate, "the handler has its own stack, above those of threads");
WL_FLAG("end-inside", end_inside, "each thread ends within two calls");
WL_FLAG("exec", exec_inside, "the process executes itself within two calls, and does all again");
WL_FLAG("stay", stay, "linger within two calls");
WL_FLAG("tail", tail, "a call ends by a jump to another function in each round");
WL_FLAG("executed", executed, "set by --exec for the program that is executed");

static __thread volatile uint64_t sink;
static __thread jmp_buf way_out;

WL_FRAME uint64_t n_leaf(uint64_t number)
{
	sink += number;
	if (sleep_us) {
		struct timespec t = wl_timespec(sleep_us * 1000);

		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
	}
	return number + 1;
}

WL_FRAME uint64_t n_middle(uint64_t number)
{
	sink += n_leaf(number) + n_leaf(number + 1);
	return number + 2;
}

WL_FRAME uint64_t n_outer(uint64_t number)
{
	sink += n_middle(number) + n_leaf(number) + n_middle(number + 10);
	return number + 3;
}

WL_FRAME uint64_t n_again(uint64_t left)
{
	if (left > 1)
		sink += n_again(left - 1);
	else
		sink += n_leaf(left);
	return left;
}

WL_FRAME uint64_t n_jumps(uint64_t number)
{
	sink += number;
	longjmp(way_out, 1);
}

WL_FRAME uint64_t n_jumped(uint64_t number)
{
	return sink += n_jumps(number);
}

WL_FRAME uint64_t n_catches(uint64_t number)
{
	if (!setjmp(way_out))
		sink += n_jumped(number);
	sink += n_leaf(number);
	return number;
}

WL_FRAME uint64_t n_handled(uint64_t number)
{
	sink += n_leaf(number);
	return number;
}

static void handler(int number)
{
	sink += n_handled((uint64_t)number);
}

WL_FRAME uint64_t n_signalled(uint64_t number)
{
	raise(SIGUSR1);
	sink += n_leaf(number);
	return number;
}

WL_FRAME uint64_t n_jumped_to(uint64_t number)
{
	sink += n_leaf(number);
	return number;
}

#if defined(__x86_64__)
/* The frame's registers are not changed: the jump keeps the return address. */
__attribute__((naked, noinline, used)) static uint64_t n_tail(uint64_t number
							      __attribute__((unused)))
{
	__asm__("endbr64; nop; nop; jmp n_jumped_to");
}
#else
#define n_tail n_jumped_to
#endif

WL_FRAME uint64_t n_wide(uint64_t number)
{
	for (uint64_t i = 0; i < wide; i++)
		sink += n_leaf(i);
	return number;
}

static void execute_again(void)
{
	char number[32], *arguments[] = {(char *)wl_name, "--executed", number,
					 wl_linger_wanted ? "--linger" : NULL, NULL};

	snprintf(number, sizeof(number), "--rounds=%lu", rounds);
	execv("/proc/self/exe", arguments);
	wl_die(WL_FAILED, "exec fails: %s", strerror(errno));
}

enum stay { BY_EXIT, BY_EXEC, FOR_GOOD };

WL_FRAME uint64_t n_stays(uint64_t how)
{
	if (how == BY_EXIT)
		pthread_exit(NULL);
	if (how == BY_EXEC)
		execute_again();
	else
		wl_await_stdin();
	return how;
}

WL_FRAME uint64_t n_enters(uint64_t how)
{
	return sink += n_stays(how);
}

static void all_in_turn(char *stack)
{
	if (alternate) {
		stack_t own = {.ss_sp = stack, .ss_size = SIGNAL_STACK};

		must(sigaltstack(&own, NULL), "sigaltstack");
	}
	for (uint64_t i = 0; i < rounds; i++) {
		sink += n_outer(i);
		sink += n_again(depth);
		if (jump)
			sink += n_catches(i);
		if (by_signal)
			sink += n_signalled(i);
		if (tail)
			sink += n_tail(i);
		if (wide)
			sink += n_wide(i);
	}
}

static void *in_thread(void *arg)
{
	all_in_turn(arg);
	if (end_inside)
		sink += n_enters(BY_EXIT);
	return arg;
}

int main(int argc, char **argv)
{
	wl_start(argc, argv);
	if (by_signal) {
		struct sigaction act = {.sa_flags = alternate ? SA_ONSTACK : 0};

		act.sa_handler = handler;
		must(sigaction(SIGUSR1, &act, NULL), "sigaction");
	}
	/* Mapped before the threads' own stacks, so above them. */
	char *stacks = wl_anonymous(threads * SIGNAL_STACK);

	if (!executed)
		wl_ready();
	if (threads > 1 || end_inside)
		wl_threads(threads, in_thread, stacks, SIGNAL_STACK);
	else
		all_in_turn(stacks);
	uint64_t leaves = 5 + 1 + jump + 2 * by_signal + tail + wide;
	uint64_t all = 1 + 2 + depth + 3 * jump + 2 * by_signal + 2 * tail + !!wide + leaves;

	if (exec_inside)
		sink += n_enters(BY_EXEC);
	if (executed)
		threads = 2;
	wl_fields("calls %lu leaves %lu", all * rounds * threads, leaves * rounds * threads);
	if (!stay)
		return wl_well_done();
	wl_line_end();
	sink += n_enters(FOR_GOOD);
	return WL_OK;
}
