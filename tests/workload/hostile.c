/* Ordinary events under names that harm what prints them carelessly. */
#include "workload.h"

static const char *name_wanted = "\\x1b[31m\\x0a\\xff\"\\\\'\\x09%s<", *action = "all",
		  *dir = "/tmp";
static uint64_t count = 10, sleep_ms = 2;
static char name[128], path[WL_PATH];
static size_t name_size;

static uint64_t opens, reads, sleeps, slept_ns, unlinks, execs;
static int exec_pids[8];

static bool wants(const char *what)
{
	return !strcmp(action, what) || !strcmp(action, "all");
}

static void do_sleep(void)
{
	for (uint64_t i = 0; i < count; i++) {
		slept_ns += workload_outer(-1, sleep_ms * 1000000);
		sleeps++;
	}
}

static void do_file(void)
{
	char byte;
	int fd;

	for (uint64_t i = 0; i < count; i++) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, &byte, 1) != 1)
			wl_die(WL_FAILED, "the hostile file: %m");
		opens++;
		reads++;
		close(fd);
	}
	if (!unlink(path))
		unlinks++;
}

/* The link's name becomes the new comm, and argv is as bad. */
static void do_exec(void)
{
	char self[WL_PATH], link[WL_PATH];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		wl_die(WL_FAILED, "/proc/self/exe: %m");
	self[n] = '\0';
	wl_alias(self, dir, name, link, sizeof(link));
	for (size_t i = 0; i < WL_COUNT(exec_pids) && i < count; i++) {
		pid_t pid = wl_fork();
		int status;

		if (pid == 0) {
			execl(link, name, "--child", name, (char *)NULL);
			_exit(127);
		}
		status = wl_reap(pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			wl_die(WL_FAILED, "the hostile program ended with %#x", status);
		exec_pids[i] = pid;
		execs++;
	}
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"name", WL_STR, &name_wanted, "NAME", "comm and file name; \\xNN gives any byte"},
		{"action", WL_STR, &action, "WHAT", "sleep, file, exec or all"},
		{"count", WL_NUM, &count, "N", "sleeps, opens and reads; at most 8 execs"},
		{"ms", WL_NUM, &sleep_ms, "T", "milliseconds of each sleep"},
		{"dir", WL_STR, &dir, "D", "where the hostile file is made"},
		{0},
	};
	char comm[64];
	ssize_t n;
	int fd;

	if (argc > 1 && !strcmp(argv[1], "--child"))
		return WL_OK;
	wl_start(argc, argv, "hostile", "Sleeps, reads and runs programs under a hostile name.",
		 opts);
	if (!wants("sleep") && !wants("file") && !wants("exec"))
		wl_die(WL_USAGE, "--action: sleep, file, exec or all");
	if (count < 1 || count > 100000 || sleep_ms > 60000)
		wl_die(WL_USAGE, "want 1 to 100000 events and at most 60000 ms");
	name_size = wl_unescape(name_wanted, name, sizeof(name));
	if (!name_size || strchr(name, '/'))
		wl_die(WL_USAGE, "--name: not empty, and no slash");
	if (prctl(PR_SET_NAME, name))
		wl_die(WL_FAILED, "comm: %m");
	n = wl_slurp("/proc/self/comm", comm, sizeof(comm));
	if (n < 1)
		wl_die(WL_FAILED, "/proc/self/comm: %m");
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		wl_die(WL_USAGE, "--dir: too long");
	wl_undo(WL_UNDO_UNLINK, 0, path, NULL);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "x", 1) != 1)
		wl_die(errno == EILSEQ || errno == EINVAL ? WL_CANNOT : WL_FAILED, "%s: %m", path);
	close(fd);

	wl_ready_begin();
	wl_hex("comm_hex", comm, (size_t)n - 1);
	wl_ready_end();
	if (wants("sleep"))
		do_sleep();
	if (wants("file"))
		do_file();
	if (wants("exec"))
		do_exec();

	wl_line_begin();
	wl_hex("comm_hex", comm, (size_t)n - 1);
	wl_hex("path_hex", path, strlen(path));
	wl_str("name", name);
	wl_u64("sleeps", sleeps);
	wl_u64("slept_ns", slept_ns);
	wl_u64("opens", opens);
	wl_u64("reads", reads);
	wl_u64("unlinks", unlinks);
	wl_u64("execs", execs);
	wl_open("exec_pids", '[');
	for (uint64_t i = 0; i < execs; i++)
		wl_i64(NULL, exec_pids[i]);
	wl_close(']');
	wl_finish();
	return WL_OK;
}
