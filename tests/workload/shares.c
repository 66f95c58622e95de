/* Computes in workload_f for a share of each cycle, then in workload_g, then sleeps. */
#include "workload.h"

WL_BOUNDED("f", in_f, 40, 0, 100, "percent of a cycle in workload_f");
WL_BOUNDED("g", in_g, 30, 0, 100, "percent of a cycle in workload_g");
WL_BOUNDED("sleep", asleep, 30, 0, 100, "percent of a cycle asleep");
WL_BOUNDED("cycle", cycle_us, 7000, 1, 1000000, "microseconds of a cycle");
WL_BOUNDED("ms", ms, 3000, 1, 600000, "milliseconds of all cycles");

WL_FRAME void workload_f(uint64_t ns)
{
	workload_spin(ns);
	__asm__ volatile("");
}

WL_FRAME void workload_g(uint64_t ns)
{
	workload_spin(ns);
	__asm__ volatile("");
}

static uint64_t lasted(void (*run)(uint64_t), uint64_t ns)
{
	uint64_t from = wl_clock(CLOCK_MONOTONIC);

	if (ns)
		run(ns);
	return wl_clock(CLOCK_MONOTONIC) - from;
}

static void sleep_for(uint64_t ns)
{
	workload_sleep(ns);
}

static int workload(void)
{
	uint64_t f_ns = 0, g_ns = 0, slept_ns = 0;

	wl_ready();
	uint64_t from = wl_clock(CLOCK_MONOTONIC), end = from + ms * 1000000;
	while (wl_clock(CLOCK_MONOTONIC) < end) {
		f_ns += lasted(workload_f, cycle_us * 10 * in_f);
		g_ns += lasted(workload_g, cycle_us * 10 * in_g);
		slept_ns += lasted(sleep_for, cycle_us * 10 * asleep);
	}
	uint64_t all_ns = wl_clock(CLOCK_MONOTONIC) - from;
	return wl_result("f_ns %lu g_ns %lu slept_ns %lu all_ns %lu", f_ns, g_ns, slept_ns, all_ns);
}
