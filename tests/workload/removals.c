/* Creates, renames and removes a known number of files, and prints the fate of each. */
#include "workload.h"

WL_NUMBER("files", files, 0, "files that are made, renamed and removed");
WL_FLAG("scene", scene_wanted, "also a call of each sort");
WL_FLAG("directories", directories_wanted, "... and of directories");
WL_NUMBER("age", age_ms, 0, "how long the scene's first file exists");
WL_TEXT("in", in, NULL, "where; else in memory");
static const char *dir;
static uint64_t gone, calls;
static const char hostile[] = "\x1b]0;x\a\n\"\\(, end";

static void make(const char *path)
{
	close(must(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), path));
}

/* A call, its arguments, and whether it ended a file that was created here. */
static void done(const char *call, long result, const char *path, const char *to, bool ended)
{
	wl_object(NULL, "call %s ret %ld path_hex %p to_hex %p ended %i", call,
		  result < 0 ? -errno : result, path, to, ended);
	calls++;
	gone += ended;
}

#define CALL(call, ended, path, to, ...)                                                           \
	done(#call, syscall(SYS_##call, __VA_ARGS__), path, to, ended)

static void scene(int at)
{
	static char too_long[5000];

	make("one");
	usleep(age_ms * 1000);
	CALL(unlinkat, true, "one", "", AT_FDCWD, "one", 0);
	make(hostile);
	CALL(unlinkat, true, hostile, "", at, hostile, 0);

	/* Another name, and a second one: it ends with the last. */
	make("old");
	must(link("old", "second"), "link");
	CALL(renameat2, false, "old", "new", AT_FDCWD, "old", AT_FDCWD, "new", 0);
	CALL(unlinkat, false, "new", "", AT_FDCWD, "new", 0);
	CALL(unlinkat, true, "second", "", AT_FDCWD, "second", 0);

	/* A file replaced by a rename ends, an exchanged one does not. */
	make("first");
	make("other");
	CALL(renameat2, false, "first", "other", AT_FDCWD, "first", AT_FDCWD, "other", 2);
	CALL(renameat2, true, "first", "other", at, "first", at, "other", 0);
	CALL(renameat2, false, "none", "other", AT_FDCWD, "none", AT_FDCWD, "other", 0);
	CALL(unlinkat, true, "other", "", AT_FDCWD, "other", 0);
	CALL(unlinkat, false, "none", "", AT_FDCWD, "none", 0);
	memset(too_long, 'x', sizeof(too_long) - 1);
	CALL(unlinkat, false, too_long, "", AT_FDCWD, too_long, 0);
#ifdef __x86_64__
	make("one");
	CALL(rename, false, "one", "two", "one", "two");
	CALL(unlink, true, "two", "", "two");
#endif
	if (!directories_wanted)
		return;
	must(mkdir("sub", 0700), "mkdir");
	must(symlink("sub", "link"), "symlink");
	CALL(unlinkat, false, "sub", "", at, "sub", AT_REMOVEDIR);
	CALL(unlinkat, false, "link", "", at, "link", 0);
#ifdef __x86_64__
	must(mkdir("sub", 0700), "mkdir");
	CALL(rmdir, false, "sub", "", "sub");
#endif
}

static int workload(void)
{
	dir = wl_make_dir(in ? in : wl_memory_dir());
	must(chdir(dir), dir);
	/* Created before tracing starts. */
	make("before");
	int here = must(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ".");
	int at = must(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), dir);
	wl_ready_with("dir %s", dir);
	for (uint64_t i = 0; i < files; i++) {
		make("file");
		must(syscall(SYS_renameat2, here, "file", here, "renamed", 0), "renameat2");
		must(unlinkat(here, "renamed", 0), "unlinkat");
	}
	gone = files;
	calls = 2 * files;
	wl_open("scene", '[');
	if (scene_wanted)
		scene(at);
	CALL(unlinkat, false, "before", "", AT_FDCWD, "before", 0);
	CALL(unlinkat, false, dir, "", AT_FDCWD, dir, AT_REMOVEDIR);
	wl_undo_count = 0;
	wl_close(']');
	return wl_result("dir %s files %lu gone %lu calls %lu", dir, files, gone, calls);
}
