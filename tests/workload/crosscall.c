/* Runs a function on another CPU a known number of times: each read of a perf event of that CPU
 * calls __perf_event_read there. */
#include "workload.h"

#include <linux/perf_event.h>

WL_NUMBER("calls", calls, 1000, "how many");

/* A CPU other than this one. */
static int open_elsewhere(int home)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CPU_CLOCK};

	for (int i = 0; i < CPU_SETSIZE; i++) {
		int fd = i == home ? -1
				   : (int)syscall(SYS_perf_event_open, &attr, -1, i, -1,
						  PERF_FLAG_FD_CLOEXEC);

		if (fd >= 0)
			return fd;
	}
	wl_die(WL_CANNOT, "no perf event of another CPU: %m");
}

static int workload(void)
{
	uint64_t took = 0, longest = 0;
	int home = sched_getcpu();
	wl_pin(home);
	int fd = open_elsewhere(home);

	wl_ready();
	for (uint64_t i = 0; i < calls; i++) {
		uint64_t start = wl_now(), ns, value;

		fail_if(read(fd, &value, sizeof(value)) != sizeof(value), "perf event");
		ns = wl_now() - start;
		took += ns;
		if (ns > longest)
			longest = ns;
	}
	return wl_result("calls %lu took_ns %lu longest_ns %lu", calls, took, longest);
}
