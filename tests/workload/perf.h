/* Counts events of the kernel as perf does. */
#ifndef WORKLOAD_PERF_H
#define WORKLOAD_PERF_H

#include "workload.h"

#include <linux/perf_event.h>

/* A tracepoint of this thread, and of those that it creates from now on; -1: no such tracepoint. */
static inline int count_event(const char *id_file)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
				       .size = sizeof(attr),
				       .config = wl_number_in(id_file),
				       .inherit = 1};

	if (!attr.config)
		return -1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static inline uint64_t counted(int event)
{
	uint64_t n = 0;

	if (event < 0 || read(event, &n, sizeof(n)) != sizeof(n))
		return 0;
	return n;
}

#endif
