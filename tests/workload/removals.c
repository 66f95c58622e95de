/* Makes, renames and removes a known number of files, and says what became of each. */
#include "workload.h"

static uint64_t files, age_ms, fails;
static bool scene_wanted, directories_wanted;
static char dir[WL_PATH];
static uint64_t gone, calls, failures;
static const char hostile[] = "\x1b]0;x\a\n\"\\(, end", *in;

static void must(long result, const char *what)
{
	if (result < 0)
		wl_die(WL_FAILED, "%s: %m", what);
}

static void make(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	must(fd, path);
	close(fd);
}

/* A call; what it was given, and whether a file that was made here ended by it. */
static void done(const char *call, long result, const char *path, const char *to, bool ended)
{
	wl_open(NULL, '{');
	wl_str("call", call);
	wl_i64("ret", result < 0 ? -errno : result);
	wl_hex("path_hex", path, strlen(path));
	wl_hex("to_hex", to, strlen(to));
	wl_bool("ended", ended);
	wl_close('}');
	calls++;
	gone += ended;
	failures += result < 0;
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

	/* What a rename replaces ends, what it exchanges does not. */
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

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"files", WL_NUM, &files, "N", "files that are made, renamed and removed"},
		{"scene", WL_FLAG, &scene_wanted, NULL, "also a call of each sort"},
		{"directories", WL_FLAG, &directories_wanted, NULL, "... and of directories"},
		{"age", WL_NUM, &age_ms, "MS", "how long the scene's first file exists"},
		{"in", WL_STR, &in, "DIR", "where; else in memory"},
		{"fails", WL_NUM, &fails, "N", "removals of what is not there"},
		{0},
	};
	int here, at;

	wl_start(argc, argv, "removals", "Makes, renames and removes files.", opts);
	/* Below a path without symbolic links. */
	if (!in)
		in = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
	snprintf(dir, sizeof(dir), "%s/removals-%d", in, getpid());
	must(mkdir(dir, 0700), dir);
	wl_undo(WL_UNDO_RMDIR, 0, dir, NULL);
	must(chdir(dir), dir);
	/* Created before tracing begins. */
	make("before");
	here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(here, ".");
	must(at, dir);
	wl_ready_begin();
	wl_str("dir", dir);
	wl_ready_end();

	wl_line_begin();
	wl_str("dir", dir);
	for (uint64_t i = 0; i < files; i++) {
		make("file");
		must(syscall(SYS_renameat2, here, "file", here, "renamed", 0), "renameat2");
		must(unlinkat(here, "renamed", 0), "unlinkat");
	}
	gone = files;
	calls = 2 * files;
	for (uint64_t i = 0; i < fails; i++)
		failures += unlinkat(here, "none", 0) < 0;
	calls += fails;
	wl_open("scene", '[');
	if (scene_wanted)
		scene(at);
	CALL(unlinkat, false, "before", "", AT_FDCWD, "before", 0);
	CALL(unlinkat, false, dir, "", AT_FDCWD, dir, AT_REMOVEDIR);
	wl_undo_count = 0;
	wl_close(']');
	wl_u64("files", files);
	wl_u64("gone", gone);
	wl_u64("calls", calls);
	wl_u64("failures", failures);
	wl_finish();
	return WL_OK;
}
