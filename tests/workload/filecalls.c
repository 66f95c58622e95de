/* Makes a known number of calls on files: creates, removes, stats and flushes them. */
#include "own_fs.h"

#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/uio.h>

WL_NUMBER("rounds", rounds, 0, "files that are made, written, read and removed");
WL_NUMBER("stats", stats, 0, "looks at /proc/self/comm in a row");
WL_NUMBER("syncs", syncs, 0, "flushes of one file in a row");
WL_NUMBER("syncfs", syncfs_calls, 0, "flushes of a file system on a disk");
WL_NUMBER("handles", handles, 0,
	  "opens by handle, on a disk, of a file, and as many of one that is not there");
WL_FLAG("scene", scene_wanted, "also one of each sort");
WL_TEXT("mkfs", own_fs, NULL, "in a new one: ext4, xfs, btrfs, f2fs, fuse or nfs");
static const char *dir, *file_path, *sub_path;
static char *late;
static uint64_t failures;
static const char hostile[] = "\x1b]0;x\a\n\"\\\xff\xc3(, end";

/* 4 reads, 3 writes, 2 flushes, 1 stat, 2 opens of which 1 creates, 2 files and 2 directories
 * removed. */
static void live(void)
{
	char buffer[64] = {0};
	struct iovec part = {buffer, sizeof(buffer)};
	struct stat status;

	must(mkdir(sub_path, 0700), "mkdir");
	must(mkdirat(AT_FDCWD, file_path, 0700), "mkdirat");
	must(rmdir(sub_path), "rmdir");
	must(unlinkat(AT_FDCWD, file_path, AT_REMOVEDIR), "unlinkat");
	int fd = must(open(file_path, O_RDWR | O_CREAT | O_EXCL, 0600), "open");
	must(write(fd, buffer, sizeof(buffer)), "write");
	must(pwrite(fd, buffer, sizeof(buffer), 0), "pwrite");
	must(writev(fd, &part, 1), "writev");
	must(fsync(fd), "fsync");
	must(fdatasync(fd), "fdatasync");
	must(fstat(fd, &status), "fstat");
	must(close(fd), "close");
	must(link(file_path, sub_path), "link");
	fd = must(open(file_path, O_RDONLY), "open");
	must(read(fd, buffer, sizeof(buffer)), "read");
	must(pread(fd, buffer, sizeof(buffer), 0), "pread");
	must(readv(fd, &part, 1), "readv");
	must(preadv(fd, &part, 1, 0), "preadv");
	must(close(fd), "close");
	must(unlink(file_path), "unlink");
	must(unlinkat(AT_FDCWD, sub_path, 0), "unlinkat");
}

/* One call and its result; `path`: its file, NULL: unknown. */
static void done(const char *call, const char *path, long result, int error)
{
	wl_open(NULL, '{');
	wl_fields("call %s known %i path_hex %p ret %ld", call, !!path, path ? path : "",
		  result < 0 ? -error : result);
	wl_close('}');
	failures += result < 0;
}

#define LOOK(call, path, ...)                                                                      \
	do {                                                                                       \
		long result = syscall(SYS_##call, __VA_ARGS__);                                    \
		done(#call, path, result, errno);                                                  \
	} while (0)

static void look(int fd)
{
	static char too_long[5000];
	struct statfs fs;
	struct statx stx;
	char st[256];

#ifdef __x86_64__
	LOOK(stat, file_path, file_path, st);
	LOOK(lstat, "/no/such", "/no/such", st);
#endif
	LOOK(newfstatat, file_path, AT_FDCWD, file_path, st, 0);
	LOOK(newfstatat, hostile, AT_FDCWD, hostile, st, 0);
	LOOK(newfstatat, file_path, fd, "", st, AT_EMPTY_PATH);
	LOOK(newfstatat, late, AT_FDCWD, late, st, 0);
	LOOK(newfstatat, NULL, AT_FDCWD, (void *)8, st, 0);
	LOOK(fstat, file_path, fd, st);
	LOOK(fstat, NULL, 12345, st);
	LOOK(statx, file_path, AT_FDCWD, file_path, 0, STATX_SIZE, &stx);
	LOOK(statx, file_path, fd, "", AT_EMPTY_PATH, STATX_SIZE, &stx);
	LOOK(statfs, "/", "/", &fs);
	LOOK(fstatfs, file_path, fd, &fs);
	memset(too_long, 'x', sizeof(too_long) - 1);
	LOOK(newfstatat, too_long, AT_FDCWD, too_long, st, 0);
}

/* The mapping is of anonymous memory, and the flush of everything comes last. */
static void flush(int fd)
{
	void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	LOOK(fsync, file_path, fd);
	LOOK(fdatasync, file_path, fd);
	LOOK(sync_file_range, file_path, fd, (long)0, (long)0, (long)2);
	LOOK(syncfs, file_path, fd);
	LOOK(msync, NULL, map, (long)4096, (long)MS_SYNC);
	LOOK(fsync, NULL, 12345);
	LOOK(sync, NULL, 0);
}

/* An operation that a file system sees; `offset`: -1 except for reads and writes. */
static void operated(const char *operation, const char *path, int64_t offset, long result,
		     int error)
{
	wl_object(NULL, "operation %s path %s offset %ld ret %ld", operation, path, offset,
		  result < 0 ? -error : result);
}

#define OPERATE(operation, path, offset, call)                                                     \
	({                                                                                         \
		long result = call;                                                                \
		operated(operation, path, offset, result, errno);                                  \
		(int)result;                                                                       \
	})

/* One of each kind, at known offsets; the last ones are not on a file system's files. */
static void operate(void)
{
	static char bytes[8192];
	struct iovec parts[] = {{bytes, 300}, {bytes + 300, 212}};
	const int create = O_CREAT | O_TRUNC | O_CLOEXEC;
	loff_t in = 600, out = 64, from = 20;
	struct statx stx;
	struct stat status;
	off_t start = 100;
	int ends[2];
	int fd = OPERATE("O", file_path, -1, open(file_path, O_RDWR | create, 0600));
	OPERATE("W", file_path, 0, write(fd, bytes, 3000));
	OPERATE("W", file_path, 8192, pwrite(fd, bytes, 500, 8192));
	OPERATE("W", file_path, 4096, pwritev(fd, parts, 2, 4096));
	/* The flush is part of it. */
	OPERATE("W", file_path, 5000, pwritev2(fd, parts, 2, 5000, RWF_DSYNC));
	OPERATE("R", file_path, 1000, pread(fd, bytes, 700, 1000));
	must(lseek(fd, 200, SEEK_SET), "lseek");
	OPERATE("R", file_path, 200, read(fd, bytes, 300));
	OPERATE("R", file_path, 500, preadv2(fd, parts, 1, -1, 0));
	OPERATE("R", file_path, 2000, preadv2(fd, parts, 2, 2000, 0));
	OPERATE("F", file_path, -1, fsync(fd));
	OPERATE("F", file_path, -1, fdatasync(fd));
	OPERATE("G", file_path, -1, fstat(fd, &status));
	OPERATE("G", file_path, -1, statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &stx));
	int to = OPERATE("O", sub_path, -1, open(sub_path, O_WRONLY | create, 0600));
	OPERATE("R", file_path, 100, sendfile(to, fd, &start, 400));
	OPERATE("R", file_path, 600, copy_file_range(fd, &in, to, &out, 50, 0));
	OPERATE("R", sub_path, 400, read(to, bytes, 10));
	must(close(to), "close");
	to = OPERATE("O", sub_path, -1, openat(AT_FDCWD, sub_path, O_WRONLY | O_APPEND));
	OPERATE("W", sub_path, 400, write(to, bytes, 10));
	must(close(to), "close");
	to = OPERATE("O", sub_path, -1, open(sub_path, O_WRONLY));
	must(pipe(ends), "pipe");
	OPERATE("R", file_path, 20, splice(fd, &from, ends[1], NULL, 30, 0));
	out = 64;
	OPERATE("W", sub_path, 64, splice(ends[0], NULL, to, &out, 30, 0));
	int top = OPERATE("O", dir, -1, open(dir, O_RDONLY | O_DIRECTORY));
	OPERATE("F", dir, -1, fsync(top));

	must(write(ends[1], bytes, 10), "write to a pipe");
	must(stat(file_path, &status), "stat");
	int memory = must(memfd_create("filecalls", 0), "memfd_create");
	must(write(memory, bytes, 10), "write to memory");
}

/* A file handle is looked up among the inodes: this one is cached. For a removed file the inode is
 * read again each time, to detect that. */
struct handle {
	struct file_handle head;
	unsigned char bytes[MAX_HANDLE_SZ];
};

static void take_handle(const char *path, struct handle *handle)
{
	int mount;

	handle->head.handle_bytes = MAX_HANDLE_SZ;
	can(name_to_handle_at(AT_FDCWD, path, &handle->head, &mount, 0), "no handle");
}

static void open_handles(int at, struct handle *there, struct handle *gone)
{
	for (uint64_t i = 0; i < handles; i++) {
		close(must(open_by_handle_at(at, &there->head, O_RDONLY), "open_by_handle_at"));
		cannot_if(open_by_handle_at(at, &gone->head, O_RDONLY) >= 0 || errno != ESTALE,
			  "the handle of a removed file");
	}
}

static int workload(void)
{
	char st[256], path[WL_PATH];
	struct handle there, gone;
	int fd = -1, on_disk = -1;

	dir = wl_make_dir(wl_memory_dir());
	file_path = wl_in(dir, "file");
	sub_path = wl_in(dir, "other");
	if (own_fs)
		mount_own(own_fs, dir);
	if (rounds) {
		wl_undo(WL_UNDO_UNLINK, 0, file_path, NULL);
		wl_undo(WL_UNDO_UNLINK, 0, sub_path, NULL);
	} else {
		fd = wl_new_file(file_path);
	}
	late = wl_late_text("/no/where");
	if (syncfs_calls || handles)
		on_disk = wl_temp_file(wl_disk_dir(NULL), 0, path);
	if (handles) {
		take_handle(path, &there);
		close(wl_temp_file(wl_disk_dir(NULL), 0, path));
		take_handle(path, &gone);
		unlink(path);
		wl_undo_count = wl_undo_count - 1;
	}
	wl_ready();

	for (uint64_t i = 0; i < rounds; i++)
		live();
	for (uint64_t i = 0; i < stats; i++)
		must(syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/comm", st, 0), "newfstatat");
	for (uint64_t i = 0; i < syncs; i++)
		must(fsync(fd), "fsync");
	/* Each time with a dirty page, on a disk. */
	for (uint64_t i = 0; i < syncfs_calls; i++) {
		must(pwrite(on_disk, &i, sizeof(i), 0), "pwrite");
		must(syncfs(on_disk), "syncfs");
	}
	if (handles)
		open_handles(on_disk, &there, &gone);
	wl_open("scene", '[');
	if (scene_wanted && rounds)
		operate();
	if (scene_wanted && stats)
		look(fd);
	if (scene_wanted && syncs)
		flush(fd);
	wl_close(']');
	return wl_result("rounds %lu operations %lu stats %lu syncs %lu handles %lu failures %lu",
			 rounds, rounds * 17, stats, syncs, handles, failures);
}
