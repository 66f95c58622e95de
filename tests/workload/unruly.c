/* Unusual processes: other roots, other namespaces, absurd names and arguments. */
#define WL_OWN_MAIN
#include "workload.h"

#define BURN_MS 8

WL_TEXT("dir", dir, NULL, "where it happens; a file `decoy` is there");
WL_TEXT("name", name_wanted, "x\\x1b[2J\\x0a\\xc2\\x9b\"\\\\\\xff\\x7f;,\\x0d (deleted)",
	"of files; \\xNN gives any byte");
static char name[200];

/* Uses CPU time in a function known by name. */
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

static void try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600);

	if (fd >= 0)
		close(fd);
}

/* ---- each in a separate process; false: not possible on this machine ---- */

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
	for (int i = 0; i < 4; i++)
		wl_thread(thread, NULL);
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

	execve(wl_at(dir, name), argv, none);
	return false;
}

static bool without_arguments(void)
{
	return executes((char *[]){NULL});
}

static bool with_an_empty_argument(void)
{
	return executes((char *[]){"", "", NULL});
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

	for (size_t i = 0; i + 1 < WL_COUNT(argv); i++)
		argv[i] = "\xff\n";
	return executes(argv);
}

static bool fails_to_execute(void)
{
	char *const argv[] = {name, name, NULL};

	execve(wl_at(dir, "\x1b]0;none\a"), argv, NULL);
	execve(dir, argv, NULL);
	syscall(SYS_execve, wl_at(dir, name), 8, 0);
	syscall(SYS_execve, 16, argv, 0);
	return true;
}

static bool by_memory_file(void)
{
	char *const argv[] = {name, NULL};
	int from = open("/proc/self/exe", O_RDONLY), to = memfd_create(name, 0);

	if (from < 0 || to < 0 || !wl_copy(from, to))
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

static bool private_mounts(void)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* Into another namespace and back. */
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

/* At the program's path there is another file with a false symbol table, and its perf map is a
 * pipe. */
static bool make_root(const char *root)
{
	char path[2 * WL_PATH];

	snprintf(path, sizeof(path), "%s%s", root, wl_self());
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	if (link(wl_at(dir, "decoy"), path) && errno != EXDEV && errno != EEXIST)
		return false;
	mkdir(wl_at(root, "tmp"), 0777);
	return !mkfifo(wl_format("%s/tmp/perf-%d.map", root, getpid()), 0666) || errno == EEXIST;
}

static bool other_root(void)
{
	if (!make_root(wl_at(dir, "root")) || chroot(wl_at(dir, "root")) || chdir("/"))
		return false;
	try_open("/tmp/no\nsuch\x1b\xff", O_RDONLY);
	try_open("../../../etc/passwd", O_RDONLY);
	unruly_work();
	return true;
}

static bool other_root_mount(void)
{
	const char *root = wl_in(dir, "\x1b[2J\nmount\xff");

	if (!private_mounts() || (mkdir(root, 0755) && errno != EEXIST) ||
	    mount("\x1b\n", root, "tmpfs", 0, NULL) || !make_root(root) || chdir(root))
		return false;
	try_open(wl_at(root, name), O_RDWR | O_CREAT);
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
	/* Deeper than the longest path: 20 * 256 bytes. */
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
	const char *path = wl_at(dir, "gone (deleted)\n\x1b"), *here = wl_in(dir, "here");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || unlink(path))
		return false;
	try_open(wl_format("/proc/self/fd/%d", fd), O_RDONLY);
	if (mkdir(here, 0700) || chdir(here) || rmdir(here))
		return false;
	try_open("in nowhere", O_RDWR | O_CREAT);
	try_open(".", O_RDONLY);
	try_open(wl_at(dir, "pipe\x1b"), O_RDONLY);
	syscall(SYS_openat, AT_FDCWD, 8, O_RDONLY);
	return true;
}

/* Its own program is deleted, and replaced by another file of that name. */
static bool decoy_in_place(void)
{
	char *const argv[] = {"unruly", "--child", NULL};
	const char *path = wl_in(dir, "swapped");
	int from = open("/proc/self/exe", O_RDONLY);
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);

	if (from < 0 || to < 0 || !wl_copy(from, to))
		return false;
	close(to);
	execv(path, argv);
	return false;
}

static void swap_own_file(void)
{
	const char *path = wl_self(), *name = strrchr(path, '/');

	if (strcmp(name, "/swapped"))
		return;
	unlink(path);
	if (link(wl_format("%.*s/decoy", (int)(name - path), path), path))
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
		const char *path = wl_at(dir, names[i]);
		int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

		all &= code_in(fd, path);
		unlink(path);
	}
	return all;
}

static const struct {
	const char *name;
	bool (*run)(void);
	int namespace; /* instead */
} actions[] = {
	{"exit", .run = ends_at_once},
	{"leader", .run = leader_ends},
	{"rename", .run = renames_itself},
	{"no-arguments", .run = without_arguments},
	{"empty-argument", .run = with_an_empty_argument},
	{"huge-arguments", .run = with_huge_arguments},
	{"many-arguments", .run = with_many_arguments},
	{"failing-exec", .run = fails_to_execute},
	{"memory-file", .run = by_memory_file},
	{"mounts", .namespace = CLONE_NEWNS},
	{"pids", .namespace = CLONE_NEWPID},
	{"users", .namespace = CLONE_NEWUSER},
	{"host-name", .namespace = CLONE_NEWUTS},
	{"network", .namespace = CLONE_NEWNET},
	{"cgroups", .namespace = CLONE_NEWCGROUP},
	{"setns", .run = enters},
	{"chroot", .run = other_root},
	{"pivot-root", .run = other_root_mount},
	{"paths", .run = long_paths},
	{"gone-files", .run = gone_files},
	{"decoy", .run = decoy_in_place},
	{"maps", .run = maps_of_strange_names},
};

int main(int argc, char **argv)
{
	uint64_t done = 0;
	size_t n = argc < 1 ? 0 : strlen(argv[0]);

	/* It runs itself as the other programs; some of them have no arguments to mark that. */
	if (n < 6 || strcmp(argv[0] + n - 6, "unruly") ||
	    (argc > 1 && !strcmp(argv[1], "--child"))) {
		swap_own_file();
		unruly_work();
		return WL_OK;
	}
	wl_start(argc, argv);
	usage_if(!dir, "--dir is wanted");
	usage_if(!wl_unescape(name_wanted, name, sizeof(name)) || strchr(name, '/'),
		 "--name: not empty, and no slash");
	fail_if(symlink(wl_self(), wl_at(dir, name)) || mkdir(wl_at(dir, "root"), 0755) ||
			mkfifo(wl_at(dir, "pipe\x1b"), 0600),
		dir);

	wl_ready();
	wl_open("done", '{');
	for (size_t i = 0; i < WL_COUNT(actions); i++) {
		pid_t pid = wl_fork();

		if (!pid)
			_exit((actions[i].run ? actions[i].run() : unshares(actions[i].namespace))
				      ? WL_OK
				      : WL_CANNOT);
		int status = wl_reap(pid);
		if (WIFSIGNALED(status))
			wl_die(WL_FAILED, "%s: status %#x", actions[i].name, status);
		wl_u64(actions[i].name, WEXITSTATUS(status) == WL_OK);
		done += WEXITSTATUS(status) == WL_OK;
	}
	wl_close('}');
	wl_finish();
	return done ? WL_OK : WL_FAILED;
}
