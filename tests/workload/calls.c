/* Calls functions of known duration: nested, recursive, and left by longjmp. */
#define WL_OWN_MAIN
#include "workload.h"

#include <setjmp.h>

#define DEPTH 5

WL_NUMBER("calls", calls, 10, "times that all is done");
WL_NUMBER("sleep-us", sleep_us, 1000, "how long calls take");
static volatile uint64_t sink;
static jmp_buf way_out;
static uint64_t slept_ns;

static void wait_us(uint64_t us)
{
	struct timespec t = wl_timespec(us * 1000);

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
}

WL_FRAME uint64_t timed_call(uint64_t number, uint64_t us)
{
	uint64_t start = wl_now();

	wait_us(us);
	slept_ns += wl_now() - start;
	return number * 2;
}

WL_FRAME uint64_t inner_call(uint64_t number)
{
	sink += number;
	return number;
}

WL_FRAME uint64_t outer_call(uint64_t number)
{
	sink += inner_call(number);
	wait_us(sleep_us);
	return sink;
}

WL_FRAME uint64_t recursive_call(uint64_t depth)
{
	if (depth > 1)
		sink += recursive_call(depth - 1);
	else
		wait_us(sleep_us);
	return sink += depth;
}

WL_FRAME uint64_t left_call(uint64_t number)
{
	sink += number;
	if (number < calls)
		longjmp(way_out, 1);
	return number; /* never: its return can be probed */
}

int main(int argc, char **argv)
{
	wl_start(argc, argv);
	wl_ready();
	for (uint64_t i = 0; i < calls; i++) {
		sink += timed_call(i, sleep_us);
		sink += outer_call(i);
		sink += recursive_call(DEPTH);
		if (!setjmp(way_out))
			sink += left_call(i);
		syscall(SYS_getppid);
	}
	return wl_result("calls %lu recursive %lu sleep_us %lu slept_ns %lu", calls, calls * DEPTH,
			 sleep_us, slept_ns);
}
