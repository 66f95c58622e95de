/* Makes calls that mount and unmount in a mount namespace of its own, and says what they were. */
#include "workload.h"

static uint64_t unmounts;
static bool scene_wanted;
static char dir[64], from[80], to[80];
static uint64_t calls;

struct attributes {
	uint64_t set, clear, propagation, userns_fd;
};

/* The call as it should be shown, but for its result. */
static long done(const char *call, long result, const char *source, const char *target,
		 const char *format, ...)
{
	int error = errno;
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	wl_open(NULL, '{');
	wl_str("call", call);
	wl_str("source", source);
	wl_str("target", target);
	wl_str("text", text);
	wl_i64("ret", result < 0 ? -error : result);
	wl_close('}');
	calls++;
	return result;
}

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

#define CALL(call, ...) syscall(SYS_##call, __VA_ARGS__)

static void older(void)
{
	done("mount", CALL(mount, "some", to, "tmpfs", MS_NOSUID | MS_NODEV, "size=1M"), "some", to,
	     "mount(\"some\", \"%s\", \"tmpfs\", MS_NOSUID|MS_NODEV, \"size=1M\")", to);
	done("mount", CALL(mount, "none", to, 0, MS_REMOUNT | MS_BIND | MS_RDONLY, 0), "none", to,
	     "mount(\"none\", \"%s\", NULL, MS_RDONLY|MS_REMOUNT|MS_BIND, NULL)", to);
	done("mount", CALL(mount, "\x1b]0;x\a", to, "no such", 0, 0), "\x1b]0;x\a", to,
	     "mount(\"\x1b]0;x\a\", \"%s\", \"no such\", 0, NULL)", to);
	done("umount", CALL(umount2, to, MNT_DETACH), "", to, "umount(\"%s\", MNT_DETACH)", to);
	done("pivot_root", CALL(pivot_root, "/no/new", "/no/old"), "/no/new", "/no/old",
	     "pivot_root(\"/no/new\", \"/no/old\")");
}

static void newer(void)
{
	struct attributes read_only = {.set = 1, .propagation = MS_PRIVATE};
	long fs = done("fsopen", CALL(fsopen, "tmpfs", 1), "", "",
		       "fsopen(\"tmpfs\", FSOPEN_CLOEXEC)");
	long mnt;

	done("fsconfig", CALL(fsconfig, fs, 1, "size", "2M", 0), "", "",
	     "fsconfig(%ld, FSCONFIG_SET_STRING, \"size\", \"2M\", 0)", fs);
	done("fsconfig", CALL(fsconfig, fs, 0, "ro", 0, 0), "", "",
	     "fsconfig(%ld, FSCONFIG_SET_FLAG, \"ro\", NULL, 0)", fs);
	done("fsconfig", CALL(fsconfig, fs, 6, 0, 0, 0), "", "",
	     "fsconfig(%ld, FSCONFIG_CMD_CREATE, NULL, NULL, 0)", fs);
	mnt = done("fsmount", CALL(fsmount, fs, 0, 1 | 0x10), "", "",
		   "fsmount(%ld, 0, MOUNT_ATTR_RDONLY|MOUNT_ATTR_NOATIME)", fs);
	done("move_mount", CALL(move_mount, mnt, "", AT_FDCWD, to, 4), "", to,
	     "move_mount(%ld, \"\", AT_FDCWD, \"%s\", MOVE_MOUNT_F_EMPTY_PATH)", mnt, to);
	done("mount_setattr", CALL(mount_setattr, AT_FDCWD, to, 0x8000, &read_only, 32), "", to,
	     "mount_setattr(AT_FDCWD, \"%s\", AT_RECURSIVE, {attr_set=MOUNT_ATTR_RDONLY, "
	     "propagation=MS_PRIVATE}, 32)",
	     to);
	close(done("fspick", CALL(fspick, AT_FDCWD, to, 1), to, "",
		   "fspick(AT_FDCWD, \"%s\", FSPICK_CLOEXEC)", to));
	close(done("open_tree", CALL(open_tree, AT_FDCWD, from, 1), from, "",
		   "open_tree(AT_FDCWD, \"%s\", OPEN_TREE_CLONE)", from));
	done("umount", CALL(umount2, to, 0), "", to, "umount(\"%s\", 0)", to);
	close(mnt);
	close(fs);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"unmounts", WL_NUM, &unmounts, "N", "unmounts of what is not there"},
		{"scene", WL_FLAG, &scene_wanted, NULL, "also a call of each sort"},
		{0},
	};
	char ns[64] = "";

	wl_start(argc, argv, "mounts", "Mounts and unmounts.", opts);
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		wl_die(errno == EPERM ? WL_CANNOT : WL_FAILED, "a mount namespace: %m");
	snprintf(dir, sizeof(dir), "/tmp/mounts-%d", getpid());
	snprintf(from, sizeof(from), "%s/from", dir);
	snprintf(to, sizeof(to), "%s/to", dir);
	wl_undo(WL_UNDO_RMDIR, 0, dir, NULL);
	wl_undo(WL_UNDO_RMDIR, 0, from, NULL);
	wl_undo(WL_UNDO_RMDIR, 0, to, NULL);
	if (mkdir(dir, 0700) || mkdir(from, 0700) || mkdir(to, 0700) ||
	    readlink("/proc/self/ns/mnt", ns, sizeof(ns) - 1) < 0)
		wl_die(WL_FAILED, "%s: %m", dir);
	wl_ready();

	wl_line_begin();
	wl_str("mount_ns", ns);
	for (uint64_t i = 0; i < unmounts; i++)
		calls += umount2("/no/where", MNT_FORCE) < 0;
	wl_u64("unmounts", unmounts);
	wl_open("scene", '[');
	if (scene_wanted) {
		older();
		newer();
	}
	wl_close(']');
	wl_u64("calls", calls);
	wl_finish();
	return WL_OK;
}
