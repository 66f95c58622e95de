/* Opens files in known ways, each with its own result, and some of them many times over. */
#include <linux/openat2.h>

#include "workload.h"

#ifndef __NR_openat2
#define __NR_openat2 437
#endif

static uint64_t count = 100;
static bool scene_wanted;
static char dir[64], sub[80], renamed[80], *late;
static int at;
static const char hostile[] = "\x1b]0;x\a\n\"\\\xff\xc3(, end";
static uint64_t opens, failures;

/* One call and what came of it; `full` is where the file truly is. */
static void done(const char *call, const char *given, const char *full, long fd, int error,
		 uint64_t flags, unsigned int mode)
{
	wl_open(NULL, '{');
	wl_str("call", call);
	wl_hex("given_hex", given, strlen(given));
	wl_hex("full_hex", full, strlen(full));
	wl_i64("fd", fd);
	wl_i64("error", fd < 0 ? error : 0);
	wl_u64("flags", flags);
	wl_u64("mode", mode);
	wl_close('}');
	opens++;
	failures += fd < 0;
	if (fd >= 0)
		close((int)fd);
}

static const char *in(const char *directory, const char *name)
{
	static char paths[4][3 * WL_PATH + 4096];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static void by_openat(int at, const char *given, const char *full, int flags, unsigned int mode)
{
	long fd = syscall(SYS_openat, at, given, flags, mode);

	done("openat", given, full, fd, errno, (uint64_t)flags, mode);
}

/* What opens files itself comes before the tracer. */
static void set_up(void)
{
	static const char *const names[] = {"made", "one", "two", hostile};
	char file[WL_PATH];
	int backing;

	snprintf(sub, sizeof(sub), "%s/sub", dir);
	snprintf(renamed, sizeof(renamed), "%s/renamed", dir);
	if (mkdir(sub, 0700))
		wl_die(WL_FAILED, "%s: %m", sub);
	wl_undo(WL_UNDO_RMDIR, 0, renamed, NULL);
	for (size_t i = 0; i < WL_COUNT(names); i++)
		wl_undo(WL_UNDO_UNLINK, 0, in(renamed, names[i]), NULL);
	at = open(sub, O_RDONLY | O_DIRECTORY);
	if (at < 0 || chdir(sub))
		wl_die(WL_FAILED, "%s: %m", sub);
	backing = wl_temp_file(dir, 0, file, sizeof(file));
	if (write(backing, "made", 5) != 5)
		wl_die(WL_FAILED, "%s: %m", file);
	late = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, backing, 0);
	if (late == MAP_FAILED)
		wl_die(WL_FAILED, "mmap: %m");
	close(backing);
}

static void scene(void)
{
	static char longest[4096], too_long[5000];
	struct open_how how = {.flags = O_RDWR | O_CREAT, .mode = 0640};
	long fd;

	by_openat(AT_FDCWD, "made", in(sub, "made"), O_WRONLY | O_CREAT | O_TRUNC, 0604);
	by_openat(at, "made", in(sub, "made"), O_RDONLY, 0);
	by_openat(at, "missing", in(sub, "missing"), O_RDONLY, 0);
	by_openat(AT_FDCWD, "./no/where", in(sub, "./no/where"), O_RDWR, 0);
	by_openat(AT_FDCWD, in(sub, "none"), in(sub, "none"), O_RDONLY, 0);
	by_openat(AT_FDCWD, hostile, in(sub, hostile), O_RDWR | O_CREAT | O_EXCL, 0600);
	by_openat(AT_FDCWD, "", sub, O_RDONLY, 0);
	if (rename(sub, renamed))
		wl_die(WL_FAILED, "%s: %m", renamed);
	by_openat(AT_FDCWD, "made", in(renamed, "made"), O_RDONLY | O_NOFOLLOW, 0);
	by_openat(at, "gone", in(renamed, "gone"), O_WRONLY | O_APPEND, 0);
	by_openat(12345, "nowhere", "nowhere", O_RDONLY, 0);
	fd = syscall(SYS_openat2, AT_FDCWD, "one", &how, sizeof(how));
	if (fd >= 0 || errno != ENOSYS)
		done("openat2", "one", in(renamed, "one"), fd, errno, how.flags, 0640);
#ifdef SYS_open
	fd = syscall(SYS_open, "made", O_RDONLY | O_CLOEXEC, 0);
	done("open", "made", in(renamed, "made"), fd, errno, O_RDONLY | O_CLOEXEC, 0);
	fd = syscall(SYS_creat, "two", 0611);
	done("creat", "two", in(renamed, "two"), fd, errno, O_CREAT | O_WRONLY | O_TRUNC, 0611);
#endif
	/* The longest path there is, through directories and back; and one that is too long. */
	while (strlen(longest) + 2 < sizeof(longest) - 4)
		strcat(longest, "./");
	strcat(longest, "made");
	by_openat(AT_FDCWD, longest, in(renamed, "made"), O_RDONLY, 0);
	memset(too_long, 'x', sizeof(too_long) - 1);
	by_openat(AT_FDCWD, too_long, in(renamed, too_long), O_RDONLY, 0);
	/* A name in memory that is not there before the call reads it. */
	fd = syscall(SYS_openat, AT_FDCWD, late, O_RDONLY, 0);
	done("openat", "made", in(renamed, "made"), fd, errno, O_RDONLY, 0);
	/* A name that cannot be read. */
	fd = syscall(SYS_openat, AT_FDCWD, (void *)8, O_RDONLY, 0);
	done("openat", "?", "?", fd, errno, O_RDONLY, 0);
	if (chdir("/"))
		wl_die(WL_FAILED, "/: %m");
	close(at);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"count", WL_NUM, &count, "N", "opens of /proc/self/comm in a row"},
		{"scene", WL_FLAG, &scene_wanted, NULL, "also one open of each sort"},
		{0},
	};
	struct timespec begun, ended;

	wl_start(argc, argv, "opener", "Opens files in known ways.", opts);
	/* Below a path without symbolic links, in memory. */
	snprintf(dir, sizeof(dir), "%s/opener-%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm",
		 getpid());
	if (mkdir(dir, 0700))
		wl_die(WL_FAILED, "%s: %m", dir);
	wl_undo(WL_UNDO_RMDIR, 0, dir, NULL);
	if (scene_wanted)
		set_up();
	wl_ready();

	clock_gettime(CLOCK_MONOTONIC, &begun);
	for (uint64_t i = 0; i < count; i++) {
		long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/comm", O_RDONLY, 0);

		if (fd < 0)
			wl_die(WL_FAILED, "/proc/self/comm: %m");
		close((int)fd);
	}
	clock_gettime(CLOCK_MONOTONIC, &ended);
	wl_line_begin();
	wl_u64("pid", (uint64_t)getpid());
	wl_u64("bulk", count);
	wl_u64("bulk_ns", (uint64_t)((ended.tv_sec - begun.tv_sec) * 1000000000LL + ended.tv_nsec -
				     begun.tv_nsec));
	wl_open("scene", '[');
	if (scene_wanted)
		scene();
	wl_close(']');
	wl_u64("scene_opens", opens);
	wl_u64("failures", failures);
	wl_finish();
	return WL_OK;
}
