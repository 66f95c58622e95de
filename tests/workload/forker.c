/* Forks children that each sleep and exit, to test that a tracer follows all of a command. */
#include "workload.h"

static uint64_t children = 5, sleeps = 1, sleep_ms = 20, exit_code, depth = 1;
static bool serial;

/* Shared with all children, one slot each. */
static struct child {
	volatile pid_t pid, parent;
	volatile uint64_t slept_ns;
	volatile int status;
} * slots;

/* Each child but the last of a line forks the next, so that grandchildren exist too. */
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
	_exit((int)exit_code);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"children", WL_NUM, &children, "N", "forked by this process"},
		{"depth", WL_NUM, &depth, "D",
		 "generations: each child forks a line of D - 1 more"},
		{"sleeps", WL_NUM, &sleeps, "N", "times each sleeps"},
		{"ms", WL_NUM, &sleep_ms, "T", "milliseconds of each sleep"},
		{"exit", WL_NUM, &exit_code, "CODE", "exit status of the children"},
		{"serial", WL_FLAG, &serial, NULL, "each child ends before the next begins"},
		{0},
	};
	uint64_t total, slept = 0, wrong = 0;
	size_t bytes;

	wl_start(argc, argv, "forker", "Forks N children that each sleep and exit.", opts);
	if (children < 1 || children > 1000 || depth < 1 || depth > 20 || exit_code > 255 ||
	    sleep_ms > 60000)
		wl_die(WL_USAGE, "want 1 to 1000 children, depth 1 to 20, status 0 to 255");
	total = children * depth;
	bytes = total * sizeof(*slots);
	slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (slots == MAP_FAILED)
		wl_die(WL_FAILED, "%m");

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

	wl_line_begin();
	wl_u64("children", children);
	wl_u64("depth", depth);
	wl_u64("forks", total);
	wl_u64("sleeps_each", sleeps);
	wl_u64("exit_code", exit_code);
	wl_open("processes", '[');
	for (uint64_t i = 0; i < total; i++) {
		wl_open(NULL, '{');
		wl_i64("pid", slots[i].pid);
		wl_i64("ppid", slots[i].parent);
		wl_u64("slept_ns", slots[i].slept_ns);
		wl_close('}');
		slept += slots[i].slept_ns;
		wrong += !WIFEXITED(slots[i].status) ||
			 WEXITSTATUS(slots[i].status) != (int)exit_code;
	}
	wl_close(']');
	wl_u64("sleeps", sleeps * total);
	wl_u64("slept_ns", slept);
	wl_finish();
	if (wrong)
		wl_die(WL_FAILED, "%llu children ended otherwise", (unsigned long long)wrong);
	return WL_OK;
}
