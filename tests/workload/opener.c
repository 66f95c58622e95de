/* Opens files in known ways, each with a known result, and some of them many times. */
#include <linux/openat2.h>

#include "workload.h"

#ifndef __NR_openat2
#define __NR_openat2 437
#endif

WL_NUMBER("count", count, 100, "opens of /proc/self/comm in a row");
WL_FLAG("scene", scene_wanted, "also one open of each sort");
static const char *dir, *sub, *renamed;
static char *late;
static int at;
static const char hostile[] = "\x1b]0;x\a\n\"\\\xff\xc3(, end";
static uint64_t opens, failures;

/* One call and its result; `full` is the real path. */
static void done(const char *call, const char *given, const char *full, long fd, int error,
		 uint64_t flags, unsigned int mode)
{
	wl_object(NULL, "call %s given_hex %p full_hex %p fd %ld error %d flags %lu mode %u", call,
		  given, full, fd, fd < 0 ? error : 0, flags, mode);
	opens++;
	failures += fd < 0;
	if (fd >= 0)
		close((int)fd);
}

static void by_openat(int at, const char *given, const char *full, int flags, unsigned int mode)
{
	long fd = syscall(SYS_openat, at, given, flags, mode);

	done("openat", given, full, fd, errno, (uint64_t)flags, mode);
}

/* Setup that opens files runs before tracing. */
static void set_up(void)
{
	static const char *const names[] = {"made", "one", "two", hostile};

	sub = wl_in(dir, "sub");
	renamed = wl_in(dir, "renamed");
	fail_if(mkdir(sub, 0700), sub);
	wl_undo(WL_UNDO_RMDIR, 0, renamed, NULL);
	for (size_t i = 0; i < WL_COUNT(names); i++)
		wl_undo(WL_UNDO_UNLINK, 0, wl_at(renamed, names[i]), NULL);
	at = must(open(sub, O_RDONLY | O_DIRECTORY), sub);
	must(chdir(sub), sub);
	late = wl_late_text("made");
}

static void scene(void)
{
	static char longest[4096], too_long[5000];
	struct open_how how = {.flags = O_RDWR | O_CREAT, .mode = 0640};

	by_openat(AT_FDCWD, "made", wl_at(sub, "made"), O_WRONLY | O_CREAT | O_TRUNC, 0604);
	by_openat(at, "made", wl_at(sub, "made"), O_RDONLY, 0);
	by_openat(at, "missing", wl_at(sub, "missing"), O_RDONLY, 0);
	by_openat(AT_FDCWD, "./no/where", wl_at(sub, "./no/where"), O_RDWR, 0);
	by_openat(AT_FDCWD, wl_at(sub, "none"), wl_at(sub, "none"), O_RDONLY, 0);
	by_openat(AT_FDCWD, hostile, wl_at(sub, hostile), O_RDWR | O_CREAT | O_EXCL, 0600);
	by_openat(AT_FDCWD, "", sub, O_RDONLY, 0);
	fail_if(rename(sub, renamed), renamed);
	by_openat(AT_FDCWD, "made", wl_at(renamed, "made"), O_RDONLY | O_NOFOLLOW, 0);
	by_openat(at, "gone", wl_at(renamed, "gone"), O_WRONLY | O_APPEND, 0);
	by_openat(12345, "nowhere", "nowhere", O_RDONLY, 0);
	long fd = syscall(SYS_openat2, AT_FDCWD, "one", &how, sizeof(how));
	if (fd >= 0 || errno != ENOSYS)
		done("openat2", "one", wl_at(renamed, "one"), fd, errno, how.flags, 0640);
#ifdef SYS_open
	fd = syscall(SYS_open, "made", O_RDONLY | O_CLOEXEC, 0);
	done("open", "made", wl_at(renamed, "made"), fd, errno, O_RDONLY | O_CLOEXEC, 0);
	fd = syscall(SYS_creat, "two", 0611);
	done("creat", "two", wl_at(renamed, "two"), fd, errno, O_CREAT | O_WRONLY | O_TRUNC, 0611);
#endif
	/* The longest valid path, through directories and back; and one that is too long. */
	while (strlen(longest) + 2 < sizeof(longest) - 4)
		strcat(longest, "./");
	strcat(longest, "made");
	by_openat(AT_FDCWD, longest, wl_at(renamed, "made"), O_RDONLY, 0);
	memset(too_long, 'x', sizeof(too_long) - 1);
	by_openat(AT_FDCWD, too_long, wl_at(renamed, too_long), O_RDONLY, 0);
	/* A name in memory that is not present before the call reads it. */
	fd = syscall(SYS_openat, AT_FDCWD, late, O_RDONLY, 0);
	done("openat", "made", wl_at(renamed, "made"), fd, errno, O_RDONLY, 0);
	/* A name that cannot be read. */
	fd = syscall(SYS_openat, AT_FDCWD, (void *)8, O_RDONLY, 0);
	done("openat", "?", "?", fd, errno, O_RDONLY, 0);
	fail_if(chdir("/"), "/");
	close(at);
}

static int workload(void)
{
	dir = wl_make_dir(wl_memory_dir());
	if (scene_wanted)
		set_up();
	wl_ready();

	uint64_t began = wl_now();
	for (uint64_t i = 0; i < count; i++)
		close(must(syscall(SYS_openat, AT_FDCWD, "/proc/self/comm", O_RDONLY, 0),
			   "/proc/self/comm"));
	began = wl_now() - began;
	wl_open("scene", '[');
	if (scene_wanted)
		scene();
	wl_close(']');
	return wl_result("bulk %lu bulk_ns %lu scene_opens %lu failures %lu", count, began, opens,
			 failures);
}
