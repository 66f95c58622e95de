/* Makes calls that mount and unmount in a private mount namespace, and prints each. */
#include "workload.h"

WL_NUMBER("unmounts", unmounts, 0, "unmounts of what is not there");
WL_FLAG("scene", scene_wanted, "also a call of each sort");
static const char *dir, *from, *to;
static uint64_t calls;

struct attributes {
	uint64_t set, clear, propagation, userns_fd;
};

/* The call as it should be shown, except for its result. */
static long done(const char *call, long result, const char *source, const char *target,
		 const char *format, ...)
{
	int error = errno;
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	wl_object(NULL, "call %s source %s target %s text %s ret %ld", call, source, target, text,
		  result < 0 ? -error : result);
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

static int workload(void)
{
	char ns[64] = "";

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		wl_die(errno == EPERM ? WL_CANNOT : WL_FAILED, "a mount namespace: %m");
	dir = wl_make_dir("/tmp");
	from = wl_in(dir, "from");
	to = wl_in(dir, "to");
	wl_undo(WL_UNDO_RMDIR, 0, from, NULL);
	wl_undo(WL_UNDO_RMDIR, 0, to, NULL);
	must(mkdir(from, 0700), from);
	must(mkdir(to, 0700), to);
	must(readlink("/proc/self/ns/mnt", ns, sizeof(ns) - 1), "a mount namespace");
	wl_ready();

	for (uint64_t i = 0; i < unmounts; i++)
		calls += umount2("/no/where", MNT_FORCE) < 0;
	wl_open("scene", '[');
	if (scene_wanted) {
		older();
		newer();
	}
	wl_close(']');
	return wl_result("mount_ns %s unmounts %lu calls %lu", ns, unmounts, calls);
}
