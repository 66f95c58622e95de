/* Runs programs, and fails to, with arguments that are known. */
#include "workload.h"

static uint64_t count = 5;
static char self[WL_PATH];
static uint64_t execs, fails;

extern char **environ;

/* Told when all is done: a line begun would be torn by the words of a tracer that shares it. */
static struct
try {
	pid_t pid;
	int error;
	const char *file;
	char *const *argv;
}
tries[8];

static void tell(const struct try *t)
{
	wl_open(NULL, '{');
	wl_i64("pid", t->pid);
	wl_hex("file_hex", t->file, strlen(t->file));
	wl_i64("error", t->error);
	wl_open("args_hex", '[');
	for (size_t i = 0; t->argv[i]; i++)
		wl_hex(NULL, t->argv[i], strlen(t->argv[i]));
	wl_close(']');
	wl_close('}');
}

/* In a child: one try, and what it was. */
static void attempt(const char *file, char *const argv[], bool works)
{
	pid_t pid = wl_fork();
	int status;

	if (pid == 0) {
		execve(file, argv, environ);
		_exit(errno);
	}
	status = wl_reap(pid);
	if (!WIFEXITED(status) || !WEXITSTATUS(status) != works)
		wl_die(WL_FAILED, "%s: status %#x", file, status);
	tries[execs + fails] = (struct try){pid, WEXITSTATUS(status), file, argv};
	execs += works;
	fails += !works;
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"count", WL_NUM, &count, "N", "more programs, several at a time"},
		{0},
	};
	static char long_arg[3000], longer_arg[6000];
	char *known[] = {"--child", "two words", "", "\x1b]0;x\a\n\"\\\xff", NULL};
	char *two_long[] = {"--child", long_arg, NULL};
	char *too_long[] = {"--child", longer_arg, "end", NULL};
	char *missing[] = {"no", "such", "", "thing", NULL};
	ssize_t n;

	if (argc > 0 && !strcmp(argv[0], "--child"))
		return WL_OK;
	wl_start(argc, argv, "runner", "Runs programs with known arguments.", opts);
	if (count > 100000)
		wl_die(WL_USAGE, "--count: at most 100000");
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		wl_die(WL_FAILED, "/proc/self/exe: %m");
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

		for (uint64_t j = 0; j < now; j++) {
			pids[j] = wl_fork();
			if (pids[j] == 0) {
				execve(self, (char *[]){"--child", "storm", NULL}, environ);
				_exit(127);
			}
		}
		for (uint64_t j = 0; j < now; j++)
			if (pids[j] < 0 || wl_reap(pids[j]))
				wl_die(WL_FAILED, "a program of the storm failed");
	}
	wl_line_begin();
	wl_u64("pid", (uint64_t)getpid());
	wl_open("tries", '[');
	for (uint64_t i = 0; i < execs + fails; i++)
		tell(&tries[i]);
	wl_close(']');
	wl_u64("storm", count);
	wl_u64("execs", execs);
	wl_u64("fails", fails);
	wl_finish();
	return WL_OK;
}
