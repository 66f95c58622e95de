/* Forks children that each sleep and exit, to test that a tracer follows all of a command. */
#include "workload.h"

WL_BOUNDED("children", children, 5, 1, 1000, "forked by this process");
WL_BOUNDED("depth", depth, 1, 1, 20, "generations: each child forks a line of D - 1 more");
WL_NUMBER("sleeps", sleeps, 1, "times each sleeps");
WL_BOUNDED("ms", sleep_ms, 20, 0, 60000, "milliseconds of each sleep");
WL_FLAG("serial", serial, "each child ends before the next begins");

/* Shared with all children, one slot each. */
static struct child {
	volatile pid_t pid, parent;
	volatile uint64_t slept_ns;
	volatile int status;
} * slots;

/* Each child except the last of a chain forks the next, so that grandchildren exist, too. */
static void child_main(uint64_t slot)
{
	pid_t next = 0;

	for (uint64_t level = 1;; level++) {
		slots[slot].pid = getpid();
		slots[slot].parent = getppid();
		next = level < depth ? wl_fork() : -1;
		if (next)
			break;
		slot++;
	}
	for (uint64_t i = 0; i < sleeps; i++)
		slots[slot].slept_ns += workload_outer(-1, sleep_ms * 1000000);
	if (next > 0)
		slots[slot + 1].status = wl_reap(next);
	_exit(WL_OK);
}

static int workload(void)
{
	uint64_t slept = 0, wrong = 0;
	uint64_t total = children * depth;
	slots = wl_shared(total * sizeof(*slots));

	wl_ready();
	for (uint64_t i = 0; i < total; i += depth) {
		pid_t pid = wl_fork();

		if (pid == 0)
			child_main(i);
		slots[i].pid = pid;
		if (serial)
			slots[i].status = wl_reap(pid);
	}
	for (uint64_t i = 0; !serial && i < total; i += depth)
		slots[i].status = wl_reap(slots[i].pid);

	wl_open("processes", '[');
	for (uint64_t i = 0; i < total; i++) {
		wl_object(NULL, "pid %d ppid %d slept_ns %lu", slots[i].pid, slots[i].parent,
			  slots[i].slept_ns);
		slept += slots[i].slept_ns;
		wrong += !!slots[i].status;
	}
	wl_close(']');
	wl_result("children %lu forks %lu sleeps %lu slept_ns %lu", children, total, sleeps * total,
		  slept);
	fail_if(wrong, "a child ended otherwise");
	return WL_OK;
}
