/* Runs programs, and fails to, with known arguments. */
#define WL_OWN_MAIN
#include "workload.h"

WL_BOUNDED("count", count, 5, 0, 100000, "more programs, several at a time");
static uint64_t execs, fails;

extern char **environ;

/* Printed at the end: a tracer on the same output could interrupt a partial line. */
static struct tried {
	pid_t pid;
	int error;
	const char *file;
	char *const *argv;
} tries[8];

static void tell(const struct tried *t)
{
	wl_open(NULL, '{');
	wl_fields("pid %d file_hex %p error %d", t->pid, t->file, t->error);
	wl_open("args_hex", '[');
	for (size_t i = 0; t->argv[i]; i++)
		wl_hex(NULL, t->argv[i], strlen(t->argv[i]));
	wl_close(']');
	wl_close('}');
}

static pid_t run(const char *file, char *const argv[])
{
	pid_t pid = wl_fork();

	if (pid == 0) {
		execve(file, argv, environ);
		_exit(errno);
	}
	return pid;
}

/* In a child: makes one attempt, and records it. */
static void attempt(const char *file, char *const argv[], bool works)
{
	pid_t pid = run(file, argv);
	int status = wl_reap(pid);

	if (!WIFEXITED(status) || !WEXITSTATUS(status) != works)
		wl_die(WL_FAILED, "%s: status %#x", file, status);
	tries[execs + fails] = (struct tried){pid, WEXITSTATUS(status), file, argv};
	execs += works;
	fails += !works;
}

int main(int argc, char **argv)
{
	static char long_arg[3000], longer_arg[6000];
	char *known[] = {"--child", "two words", "", "\x1b]0;x\a\n\"\\\xff", NULL};
	char *two_long[] = {"--child", long_arg, NULL};
	char *too_long[] = {"--child", longer_arg, "end", NULL};
	char *missing[] = {"no", "such", "", "thing", NULL};
	char *storm[] = {"--child", "storm", NULL};

	if (argc > 0 && !strcmp(argv[0], "--child"))
		return WL_OK;
	wl_start(argc, argv);
	const char *self = wl_self();
	memset(long_arg, 'l', sizeof(long_arg) - 1);
	memset(longer_arg, 'm', sizeof(longer_arg) - 1);
	wl_ready();

	attempt(self, known, true);
	attempt(self, two_long, true);
	attempt(self, too_long, true);
	attempt("/nonexistent/program", missing, false);
	attempt("/", missing, false);
	/* Four at a time, as make does. */
	for (uint64_t i = 0; i < count; i += 4) {
		pid_t pids[4];
		uint64_t now = count - i < 4 ? count - i : 4;

		for (uint64_t j = 0; j < now; j++)
			pids[j] = run(self, storm);
		for (uint64_t j = 0; j < now; j++)
			check(!wl_reap(pids[j]), "a program of the storm");
	}
	wl_open("tries", '[');
	for (uint64_t i = 0; i < execs + fails; i++)
		tell(&tries[i]);
	wl_close(']');
	return wl_result("storm %lu execs %lu fails %lu", count, execs, fails);
}
