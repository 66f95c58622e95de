/* Ordinary events under names that harm careless output. */
#define WL_OWN_MAIN
#include "workload.h"

WL_TEXT("name", name_wanted, "\\x1b[31m\\x0a\\xff\"\\\\'\\x09%s<",
	"comm and file name; \\xNN gives any byte");
WL_TEXT("action", action, "all", "sleep, file, exec or all");
WL_BOUNDED("count", count, 10, 1, 100000, "sleeps, opens and reads; at most 8 execs");
WL_BOUNDED("ms", sleep_ms, 2, 0, 60000, "milliseconds of each sleep");
WL_TEXT("dir", dir, "/tmp", "where the hostile file is made");
static char name[128], path[WL_PATH];

static uint64_t opens, sleeps, execs;

static bool wants(const char *what)
{
	return !strcmp(action, what) || !strcmp(action, "all");
}

static void do_sleep(void)
{
	for (; sleeps < count; sleeps++)
		workload_outer(-1, sleep_ms * 1000000);
}

static void do_file(void)
{
	char byte;

	for (; opens < count; opens++) {
		int fd = must(open(path, O_RDONLY | O_CLOEXEC), "the hostile file");

		check(read(fd, &byte, 1) == 1, "the hostile file");
		close(fd);
	}
	unlink(path);
}

/* The link's name becomes the new comm, and argv is equally hostile. */
static void do_exec(void)
{
	const char *link = wl_alias(wl_self(), dir, name);

	for (; execs < 8 && execs < count; execs++) {
		pid_t pid = wl_fork();

		if (pid == 0) {
			execl(link, name, "--child", name, (char *)NULL);
			_exit(127);
		}
		check(!wl_reap(pid), "the hostile program");
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--child"))
		return WL_OK;
	wl_start(argc, argv);
	wl_one_of("action", action, "sleep file exec all");
	usage_if(!wl_unescape(name_wanted, name, sizeof(name)) || strchr(name, '/'),
		 "--name: not empty, and no slash");
	must(prctl(PR_SET_NAME, name), "comm");
	usage_if(snprintf(path, sizeof(path), "%s/%s", dir, name) >= WL_PATH, "--dir: too long");
	wl_undo(WL_UNDO_UNLINK, 0, path, NULL);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "x", 1) != 1)
		wl_die(errno == EILSEQ || errno == EINVAL ? WL_CANNOT : WL_FAILED, "%s: %m", path);
	close(fd);

	wl_ready();
	if (wants("sleep"))
		do_sleep();
	if (wants("file"))
		do_file();
	if (wants("exec"))
		do_exec();

	return wl_result("name %s sleeps %lu opens %lu execs %lu", name, sleeps, opens, execs);
}
