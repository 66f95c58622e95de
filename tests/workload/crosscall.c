/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Has another CPU run a function a known number of times: each read of a perf event of that CPU
 * calls __perf_event_read there. */
#include "workload.h"

#include <linux/perf_event.h>

static uint64_t calls = 1000, cpu = WL_UNSET;

/* Some CPU that is not this one. */
static int open_elsewhere(int home)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
	};

	for (int i = 0; i < CPU_SETSIZE; i++) {
		int fd;

		if (i == home || (cpu != WL_UNSET && i != (int)cpu))
			continue;
		fd = (int)syscall(SYS_perf_event_open, &attr, -1, i, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	wl_die(WL_CANNOT, "no perf event of another CPU: %m");
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"calls", WL_NUM, &calls, "N", "how many"},
		{"cpu", WL_NUM, &cpu, "N", "the other CPU (default: any)"},
		{0},
	};
	uint64_t took = 0, longest = 0;
	int home, fd;

	wl_start(argc, argv, "crosscall", "Has another CPU run a function N times.", opts);
	home = sched_getcpu();
	wl_pin(home);
	fd = open_elsewhere(home);

	wl_ready_begin();
	wl_ready_end();

	for (uint64_t i = 0; i < calls; i++) {
		uint64_t start = wl_now(), ns, value;

		if (read(fd, &value, sizeof(value)) != sizeof(value))
			wl_die(WL_FAILED, "perf event: %m");
		ns = wl_now() - start;
		took += ns;
		if (ns > longest)
			longest = ns;
	}

	wl_line_begin();
	wl_u64("calls", calls);
	wl_u64("took_ns", took);
	wl_u64("longest_ns", longest);
	wl_finish();
	return WL_OK;
}
