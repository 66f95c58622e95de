/* Reads and writes files in all ways that there are, a known number of times, and slowly once. */
#include "workload.h"

#include <sys/sendfile.h>
#include <sys/uio.h>

static uint64_t count = 50, size = 4096, delay_ms;
static char dir[64], data_path[96], copy_path[96];
static char *buffer;
static uint64_t reads, writes, copies, read_bytes, write_bytes, copy_bytes;

static void moved(const char *what, ssize_t n, uint64_t *calls, uint64_t *bytes)
{
	if (n < 0)
		wl_die(WL_FAILED, "%s: %m", what);
	++*calls;
	*bytes += (uint64_t)n;
}

static ssize_t write_by(uint64_t way, int fd)
{
	struct iovec parts[] = {{buffer, size / 2}, {buffer + size / 2, size - size / 2}};

	switch (way % 5) {
	case 0:
		return write(fd, buffer, size);
	case 1:
		return pwrite(fd, buffer, size, 0);
	case 2:
		return writev(fd, parts, 2);
	case 3:
		return pwritev(fd, parts, 2, 0);
	default:
		return pwritev2(fd, parts, 2, 0, 0);
	}
}

static ssize_t read_by(uint64_t way, int fd)
{
	struct iovec parts[] = {{buffer, size / 2}, {buffer + size / 2, size - size / 2}};

	switch (way % 5) {
	case 0:
		return pread(fd, buffer, size, 0);
	case 1:
		return readv(fd, parts, 2);
	case 2:
		return preadv(fd, parts, 2, 0);
	case 3:
		return preadv2(fd, parts, 2, 0, 0);
	default: /* at the end of the file: 0 bytes */
		return lseek(fd, 0, SEEK_END) < 0 ? -1 : read(fd, buffer, size);
	}
}

/* From one file to the other: each call reads the one and writes the other. */
static void copy(int from, int to)
{
	off_t start = 0;
	loff_t in = 0, out = 0;

	moved("sendfile", sendfile(to, from, &start, size), &copies, &copy_bytes);
	moved("copy_file_range", copy_file_range(from, &in, to, &out, size, 0), &copies,
	      &copy_bytes);
}

static int full_pipe[2];

static void *drain_later(void *unused)
{
	char room[65536];

	usleep((useconds_t)delay_ms * 1000);
	while (read(full_pipe[0], room, sizeof(room)) > 0)
		;
	return unused;
}

/* The file is read into a pipe that is full until the delay is over. */
static void read_slowly(int fd)
{
	static char fill[65536];
	pthread_t drain;
	loff_t at = 0;

	if (pipe(full_pipe) || write(full_pipe[1], fill, sizeof(fill)) != sizeof(fill))
		wl_die(WL_FAILED, "pipe: %m");
	if (pthread_create(&drain, NULL, drain_later, NULL))
		wl_die(WL_FAILED, "no thread");
	moved("splice", splice(fd, &at, full_pipe[1], NULL, size, 0), &reads, &read_bytes);
	close(full_pipe[1]);
	pthread_join(drain, NULL);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"count", WL_NUM, &count, "N", "reads, and as many writes"},
		{"size", WL_NUM, &size, "BYTES", "of each"},
		{"delay", WL_NUM, &delay_ms, "MS", "also a read that takes so long"},
		{0},
	};
	int data, copy_to, broken;

	wl_start(argc, argv, "fileio", "Reads and writes files in all ways that there are.", opts);
	snprintf(dir, sizeof(dir), "%s/fileio-%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm",
		 getpid());
	snprintf(data_path, sizeof(data_path), "%s/data", dir);
	snprintf(copy_path, sizeof(copy_path), "%s/copy", dir);
	if (mkdir(dir, 0700))
		wl_die(WL_FAILED, "%s: %m", dir);
	wl_undo(WL_UNDO_RMDIR, 0, dir, NULL);
	wl_undo(WL_UNDO_UNLINK, 0, data_path, NULL);
	wl_undo(WL_UNDO_UNLINK, 0, copy_path, NULL);
	data = open(data_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	copy_to = open(copy_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	broken = open(data_path, O_WRONLY | O_CLOEXEC);
	buffer = calloc(1, size);
	if (data < 0 || copy_to < 0 || broken < 0 || !buffer)
		wl_die(WL_FAILED, "%s: %m", dir);
	wl_ready_begin();
	wl_str("dir", dir);
	wl_str("data", data_path);
	wl_ready_end();

	for (uint64_t i = 0; i < count; i++) {
		moved("write", write_by(i, data), &writes, &write_bytes);
		moved("read", read_by(i, data), &reads, &read_bytes);
		if (read(broken, buffer, size) >= 0)
			wl_die(WL_FAILED, "read through a descriptor for writing");
	}
	copy(data, copy_to);
	if (delay_ms)
		read_slowly(data);
	wl_line_begin();
	wl_u64("pid", (uint64_t)getpid());
	wl_u64("reads", reads + copies);
	wl_u64("writes", writes);
	wl_u64("read_bytes", read_bytes + copy_bytes);
	wl_u64("write_bytes", write_bytes);
	wl_u64("copies", copies);
	wl_u64("copy_bytes", copy_bytes);
	wl_u64("calls", reads + writes + 2 * copies);
	wl_u64("results", reads + writes + copies);
	wl_u64("failed", count);
	wl_u64("returned", reads + writes + copies + count);
	wl_str("data", data_path);
	wl_str("copy", copy_path);
	wl_finish();
	return WL_OK;
}
