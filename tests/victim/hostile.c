/* Ordinary events under names that harm what prints them carelessly. */
#include "victim.h"

static const char *name_wanted = "\\x1b[31m\\x0a\\xff\"\\\\'\\x09%s<", *action = "all",
		  *dir = "/tmp";
static uint64_t count = 10, sleep_ms = 2;
static char name[128], path[VT_PATH];
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
		slept_ns += victim_outer(-1, sleep_ms * 1000000);
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
			vt_die(VT_FAILED, "the hostile file: %m");
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
	char self[VT_PATH], link[VT_PATH];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		vt_die(VT_FAILED, "/proc/self/exe: %m");
	self[n] = '\0';
	vt_alias(self, dir, name, link, sizeof(link));
	for (size_t i = 0; i < VT_COUNT(exec_pids) && i < count; i++) {
		pid_t pid = vt_fork();
		int status;

		if (pid == 0) {
			execl(link, name, "--child", name, (char *)NULL);
			_exit(127);
		}
		status = vt_reap(pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			vt_die(VT_FAILED, "the hostile program ended with %#x", status);
		exec_pids[i] = pid;
		execs++;
	}
}

int main(int argc, char **argv)
{
	const struct vt_opt opts[] = {
		{"name", VT_STR, &name_wanted, "NAME", "comm and file name; \\xNN gives any byte"},
		{"action", VT_STR, &action, "WHAT", "sleep, file, exec or all"},
		{"count", VT_NUM, &count, "N", "sleeps, opens and reads; at most 8 execs"},
		{"ms", VT_NUM, &sleep_ms, "T", "milliseconds of each sleep"},
		{"dir", VT_STR, &dir, "D", "where the hostile file is made"},
		{0},
	};
	char comm[64];
	ssize_t n;
	int fd;

	if (argc > 1 && !strcmp(argv[1], "--child"))
		return VT_OK;
	vt_start(argc, argv, "hostile", "Sleeps, reads and runs programs under a hostile name.",
		 opts);
	if (!wants("sleep") && !wants("file") && !wants("exec"))
		vt_die(VT_USAGE, "--action: sleep, file, exec or all");
	if (count < 1 || count > 100000 || sleep_ms > 60000)
		vt_die(VT_USAGE, "want 1 to 100000 events and at most 60000 ms");
	name_size = vt_unescape(name_wanted, name, sizeof(name));
	if (!name_size || strchr(name, '/'))
		vt_die(VT_USAGE, "--name: not empty, and no slash");
	if (prctl(PR_SET_NAME, name))
		vt_die(VT_FAILED, "comm: %m");
	n = vt_slurp("/proc/self/comm", comm, sizeof(comm));
	if (n < 1)
		vt_die(VT_FAILED, "/proc/self/comm: %m");
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		vt_die(VT_USAGE, "--dir: too long");
	vt_undo(VT_UNDO_UNLINK, 0, path, NULL);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "x", 1) != 1)
		vt_die(errno == EILSEQ || errno == EINVAL ? VT_CANNOT : VT_FAILED, "%s: %m", path);
	close(fd);

	vt_ready_begin();
	vt_hex("comm_hex", comm, (size_t)n - 1);
	vt_ready_end();
	if (wants("sleep"))
		do_sleep();
	if (wants("file"))
		do_file();
	if (wants("exec"))
		do_exec();

	vt_line_begin();
	vt_hex("comm_hex", comm, (size_t)n - 1);
	vt_hex("path_hex", path, strlen(path));
	vt_str("name", name);
	vt_u64("sleeps", sleeps);
	vt_u64("slept_ns", slept_ns);
	vt_u64("opens", opens);
	vt_u64("reads", reads);
	vt_u64("unlinks", unlinks);
	vt_u64("execs", execs);
	vt_open("exec_pids", '[');
	for (uint64_t i = 0; i < execs; i++)
		vt_i64(NULL, exec_pids[i]);
	vt_close(']');
	vt_finish();
	return VT_OK;
}
