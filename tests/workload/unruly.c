/* Processes that are seldom thought of: other roots, other namespaces, absurd names and arguments.
 */
#include "workload.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define BURN_MS 8

static const char *name_wanted = "x\\x1b[2J\\x0a\\xc2\\x9b\"\\\\\\xff\\x7f;,\\x0d (deleted)";
static const char *only = "", *dir_wanted;
static uint64_t rounds = 1;
static bool jit_wanted;
static char name[200], dir[WL_PATH], self[WL_PATH];

/* A place to burn time in, known by its name. */
WL_FRAME static void unruly_burn(unsigned int ms)
{
	uint64_t end = wl_clock(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000ULL;

	while (wl_clock(CLOCK_THREAD_CPUTIME_ID) < end)
		WL_KEEP_FRAME();
}

WL_FRAME static void unruly_work(void)
{
	free(malloc(1234));
	unruly_burn(BURN_MS);
	wl_nap_ms(1);
	WL_KEEP_FRAME();
}

static const char *in(const char *directory, const char *entry)
{
	static char paths[4][3 * WL_PATH];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, entry);
	return path;
}

static void try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600);

	if (fd >= 0)
		close(fd);
}

/* ---- each in a process of its own; false: this machine does not do that ---- */

static bool ends_at_once(void)
{
	return true;
}

static void *thread(void *unused)
{
	unruly_work();
	return unused;
}

/* The first thread ends before the others. */
static bool leader_ends(void)
{
	pthread_t id;

	for (int i = 0; i < 4; i++)
		if (pthread_create(&id, NULL, thread, NULL))
			return false;
	syscall(SYS_exit, 0);
	return true;
}

static bool renames_itself(void)
{
	char comm[16];

	for (int i = 0; i < 200; i++) {
		for (size_t at = 0; at < 15; at++)
			comm[at] = (char)(1 + (i * 31 + at * 7) % 255);
		comm[15] = '\0';
		prctl(PR_SET_NAME, comm);
		try_open("/", O_RDONLY | O_DIRECTORY);
	}
	unruly_work();
	return true;
}

static bool executes(char *const argv[])
{
	char *const none[] = {NULL};

	execve(in(dir, name), argv, none);
	return false;
}

static bool without_arguments(void)
{
	char *const argv[] = {NULL};

	return executes(argv);
}

static bool with_an_empty_argument(void)
{
	char empty[] = "";
	char *const argv[] = {empty, empty, NULL};

	return executes(argv);
}

static bool with_huge_arguments(void)
{
	static char huge[128 * 1024], page[5000];
	char *const argv[] = {name, page, huge, page, NULL};

	memset(huge, '\x1b', sizeof(huge) - 1);
	for (size_t i = 0; i < sizeof(page) - 1; i++)
		page[i] = (char)(1 + i % 255);
	return executes(argv);
}

static bool with_many_arguments(void)
{
	static char *argv[3001];
	static char word[] = "\xff\n";

	for (size_t i = 0; i + 1 < WL_COUNT(argv); i++)
		argv[i] = word;
	return executes(argv);
}

static bool fails_to_execute(void)
{
	char *const argv[] = {name, name, NULL};

	execve(in(dir, "\x1b]0;none\a"), argv, NULL);
	execve(dir, argv, NULL);
	syscall(SYS_execve, in(dir, name), 8, 0);
	syscall(SYS_execve, 16, argv, 0);
	return true;
}

static bool by_memory_file(void)
{
	char *const argv[] = {name, NULL};
	static char bytes[1 << 20];
	int from = open("/proc/self/exe", O_RDONLY), to = memfd_create(name, 0);
	ssize_t n;

	if (from < 0 || to < 0)
		return false;
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)n) != n)
			return false;
	syscall(SYS_execveat, to, "", argv, argv + 1, AT_EMPTY_PATH);
	return false;
}

static bool unshares(int flag)
{
	if (unshare(flag))
		return false;
	unruly_work();
	if (flag == CLONE_NEWPID) {
		pid_t pid = wl_fork();

		if (!pid) { /* its first process */
			unruly_work();
			_exit(WL_OK);
		}
		wl_reap(pid);
	}
	try_open("/proc/self/comm", O_RDONLY);
	return true;
}

static bool other_mounts(void)
{
	return unshares(CLONE_NEWNS);
}
static bool other_pids(void)
{
	return unshares(CLONE_NEWPID);
}
static bool other_users(void)
{
	return unshares(CLONE_NEWUSER);
}
static bool other_host_name(void)
{
	return unshares(CLONE_NEWUTS);
}
static bool other_network(void)
{
	return unshares(CLONE_NEWNET);
}
static bool other_cgroups(void)
{
	return unshares(CLONE_NEWCGROUP);
}

static bool private_mounts(void)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* There and back. */
static bool enters(void)
{
	int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	if (own < 0 || !private_mounts())
		return false;
	unruly_work();
	if (setns(own, CLONE_NEWNS))
		return false;
	unruly_work();
	return true;
}

/* Another file has the program's path there, a symbol table with lies, and a pipe is its map. */
static bool make_root(const char *root)
{
	char path[2 * WL_PATH], map[64];

	snprintf(path, sizeof(path), "%s%s", root, self);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	if (link(in(dir, "decoy"), path) && errno != EXDEV && errno != EEXIST)
		return false;
	mkdir(in(root, "tmp"), 0777);
	snprintf(map, sizeof(map), "tmp/perf-%d.map", getpid());
	return !mkfifo(in(root, map), 0666) || errno == EEXIST;
}

static bool other_root(void)
{
	if (!make_root(in(dir, "root")) || chroot(in(dir, "root")) || chdir("/"))
		return false;
	try_open("/tmp/no\nsuch\x1b\xff", O_RDONLY);
	try_open("../../../etc/passwd", O_RDONLY);
	unruly_work();
	return true;
}

static bool other_root_mount(void)
{
	char root[2 * WL_PATH];

	snprintf(root, sizeof(root), "%s", in(dir, "\x1b[2J\nmount\xff"));
	if (!private_mounts() || (mkdir(root, 0755) && errno != EEXIST) ||
	    mount("\x1b\n", root, "tmpfs", 0, NULL) || !make_root(root) || chdir(root))
		return false;
	try_open(in(root, name), O_RDWR | O_CREAT);
	mkdir("old\n", 0755);
	if (syscall(SYS_pivot_root, ".", "old\n") || chdir("/"))
		return false;
	unruly_work();
	try_open("/tmp", O_RDONLY | O_DIRECTORY);
	umount2("/old\n", MNT_DETACH);
	unruly_work();
	try_open(name, O_RDONLY);
	return true;
}

static bool long_paths(void)
{
	char component[256];
	static char path[4200];

	if (chdir(dir))
		return false;
	for (int i = 0; i < 255; i++)
		component[i] = (char)(1 + (i * 97) % 46); /* no slash */
	component[255] = '\0';
	/* Deeper than any path can say: 20 * 256 bytes. */
	for (int i = 0; i < 20; i++)
		if ((mkdir(component, 0700) && errno != EEXIST) || chdir(component))
			return i > 0;
	try_open("at the end\n", O_RDWR | O_CREAT);
	unlink("at the end\n");
	memset(path, '\xfe', sizeof(path) - 1);
	try_open(path, O_RDONLY);
	path[4095] = '\0';
	try_open(path, O_RDONLY);
	for (size_t i = 0; i < 4094; i += 2)
		memcpy(path + i, "./", 2);
	path[4094] = '\0';
	try_open(path, O_RDONLY);
	for (int i = 0; i < 20; i++)
		if (chdir("..") || rmdir(component))
			return false;
	return true;
}

static bool gone_files(void)
{
	const char *path = in(dir, "gone (deleted)\n\x1b");
	char link[64];
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || unlink(path))
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	try_open(link, O_RDONLY);
	if (mkdir(in(dir, "here"), 0700) || chdir(in(dir, "here")) || rmdir(in(dir, "here")))
		return false;
	try_open("in nowhere", O_RDWR | O_CREAT);
	try_open(".", O_RDONLY);
	try_open(in(dir, "pipe\x1b"), O_RDONLY);
	syscall(SYS_openat, AT_FDCWD, 8, O_RDONLY);
	return true;
}

/* Its own program is deleted, and another file takes the name. */
static bool decoy_in_place(void)
{
	char *const argv[] = {"unruly", "--child", NULL};
	static char bytes[4 << 20];
	char path[2 * WL_PATH];
	int from = open("/proc/self/exe", O_RDONLY), to;
	ssize_t n;

	snprintf(path, sizeof(path), "%s", in(dir, "swapped"));
	to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	if (from < 0 || to < 0)
		return false;
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)n) != n)
			return false;
	close(to);
	execv(path, argv);
	return false;
}

static void swap_own_file(void)
{
	char path[WL_PATH];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 8 || strncmp(path + n - 8, "/swapped", 8))
		return;
	path[n] = '\0';
	unlink(path);
	path[n - 7] = '\0';
	if (link(in(path, "decoy"), in(path, "swapped")))
		_exit(WL_FAILED);
}

/* Code in a file whose name looks like a line of the list of mappings. */
#if defined(__x86_64__)
static const unsigned char code[] = {0xb9, 0, 0, 0x40, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
#elif defined(__aarch64__)
static const uint32_t code[] = {0xd2a00800, 0xf1000400, 0x54ffffe1, 0xd65f03c0};
#endif

static bool code_in(int fd, const char *path)
{
	void *place;

	if (fd < 0 || write(fd, code, sizeof(code)) != sizeof(code))
		return false;
	place = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (place == MAP_FAILED)
		return false;
	if (path && strstr(path, "gone"))
		unlink(path);
	for (int i = 0; i < 8; i++)
		((void (*)(void))place)();
	return true;
}

static bool maps_of_strange_names(void)
{
	static const char *const names[] = {"\n7f0000000000-7fffffffffff r-xp 00000000 00:01 1   x",
					    "gone\x1b[2J\xff", "[vdso]", "x (deleted)"};
	bool all = code_in(memfd_create("\x1b[2J\n\xff", 0), NULL);

	for (size_t i = 0; i < WL_COUNT(names); i++) {
		const char *path = in(dir, names[i]);
		int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

		all &= code_in(fd, path);
		unlink(path);
	}
	return all;
}

static const struct {
	const char *name;
	bool (*run)(void);
} actions[] = {
	{"exit", ends_at_once},
	{"leader", leader_ends},
	{"rename", renames_itself},
	{"no-arguments", without_arguments},
	{"empty-argument", with_an_empty_argument},
	{"huge-arguments", with_huge_arguments},
	{"many-arguments", with_many_arguments},
	{"failing-exec", fails_to_execute},
	{"memory-file", by_memory_file},
	{"mounts", other_mounts},
	{"pids", other_pids},
	{"users", other_users},
	{"host-name", other_host_name},
	{"network", other_network},
	{"cgroups", other_cgroups},
	{"setns", enters},
	{"chroot", other_root},
	{"pivot-root", other_root_mount},
	{"paths", long_paths},
	{"gone-files", gone_files},
	{"decoy", decoy_in_place},
	{"maps", maps_of_strange_names},
};

/* For ever, in memory that has no name. */
static void jit(void)
{
#if defined(__x86_64__)
	static const unsigned char loop[] = {0xeb, 0xfe};
#elif defined(__aarch64__)
	static const uint32_t loop[] = {0x14000000};
#endif
	void *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED)
		wl_die(WL_FAILED, "mmap: %m");
	memcpy(place, loop, sizeof(loop));
	if (mprotect(place, 4096, PROT_READ | PROT_EXEC))
		wl_die(WL_CANNOT, "mprotect: %m");
	wl_ready_begin();
	wl_u64("address", (uint64_t)place);
	wl_ready_end();
	((void (*)(void))place)();
}

static bool is_unruly(const char *path)
{
	size_t n = strlen(path);

	return n >= 6 && !strcmp(path + n - 6, "unruly");
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"dir", WL_STR, &dir_wanted, "D", "where it happens; a file `decoy` is there"},
		{"name", WL_STR, &name_wanted, "NAME", "of files; \\xNN gives any byte"},
		{"only", WL_STR, &only, "ACTION", "this alone"},
		{"rounds", WL_NUM, &rounds, "N", "how often all of it"},
		{"jit", WL_FLAG, &jit_wanted, NULL, "instead of it all a loop in anonymous memory"},
		{0},
	};
	uint64_t done = 0;
	ssize_t n;

	/* The programs that it runs are itself; some have no arguments that could tell. */
	if (argc < 1 || !is_unruly(argv[0]) || (argc > 1 && !strcmp(argv[1], "--child"))) {
		swap_own_file();
		unruly_work();
		return WL_OK;
	}
	wl_start(argc, argv, "unruly", "Does what few processes do.", opts);
	if (jit_wanted)
		jit();
	if (!dir_wanted)
		wl_die(WL_USAGE, "--dir is wanted");
	snprintf(dir, sizeof(dir), "%s", dir_wanted);
	if (!wl_unescape(name_wanted, name, sizeof(name)) || strchr(name, '/'))
		wl_die(WL_USAGE, "--name: not empty, and no slash");
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		wl_die(WL_FAILED, "/proc/self/exe: %m");
	self[n] = '\0';
	if (symlink(self, in(dir, name)) || mkdir(in(dir, "root"), 0755) ||
	    mkfifo(in(dir, "pipe\x1b"), 0600))
		wl_die(WL_FAILED, "%s: %m", dir);

	wl_ready();
	wl_line_begin();
	wl_open("done", '{');
	for (size_t i = 0; i < WL_COUNT(actions); i++) {
		uint64_t well = 0;

		if (*only && strcmp(only, actions[i].name))
			continue;
		for (uint64_t round = 0; round < rounds; round++) {
			pid_t pid = wl_fork();
			int status;

			if (!pid)
				_exit(actions[i].run() ? WL_OK : WL_CANNOT);
			status = wl_reap(pid);
			if (WIFSIGNALED(status))
				wl_die(WL_FAILED, "%s: signal %d", actions[i].name,
				       WTERMSIG(status));
			well += WEXITSTATUS(status) == WL_OK;
		}
		wl_u64(actions[i].name, well);
		done += well;
	}
	wl_close('}');
	wl_finish();
	return done ? WL_OK : WL_FAILED;
}
