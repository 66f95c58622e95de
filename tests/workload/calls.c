/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls functions that take a known time: within each other, recursive, and left by longjmp. */
#include "workload.h"

#include <setjmp.h>

#define DEPTH 5

static uint64_t calls = 10, sleep_us = 1000;
static volatile uint64_t sink;
static jmp_buf way_out;
static uint64_t slept_ns;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * WL_NSEC + (uint64_t)t.tv_nsec;
}

static void wait_us(uint64_t us)
{
	struct timespec t = {.tv_sec = (time_t)(us / 1000000),
			     .tv_nsec = (long)(us % 1000000 * 1000)};

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
}

WL_FRAME uint64_t timed_call(uint64_t number, uint64_t us)
{
	uint64_t start = now_ns();

	wait_us(us);
	slept_ns += now_ns() - start;
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
	longjmp(way_out, 1);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"calls", WL_NUM, &calls, "N", "times that all is done"},
		{"sleep-us", WL_NUM, &sleep_us, "US", "how long calls take"},
		{0},
	};

	wl_start(argc, argv, "calls", "Calls functions that take a known time.", opts);
	wl_ready();
	for (uint64_t i = 0; i < calls; i++) {
		sink += timed_call(i, sleep_us);
		sink += outer_call(i);
		sink += recursive_call(DEPTH);
		if (!setjmp(way_out))
			sink += left_call(i);
		syscall(SYS_getppid);
	}
	wl_line_begin();
	wl_u64("calls", calls);
	wl_u64("recursive", calls * DEPTH);
	wl_u64("sleep_us", sleep_us);
	wl_u64("slept_ns", slept_ns);
	wl_finish();
	return WL_OK;
}
