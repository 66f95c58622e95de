/* Reads and writes files by all system calls, a known number of times, and slowly once. */
#include "workload.h"

#include <sys/sendfile.h>
#include <sys/uio.h>

WL_NUMBER("count", count, 50, "reads, and as many writes");
WL_NUMBER("size", size, 4096, "of each");
WL_NUMBER("delay", delay_ms, 0, "also a read that takes so long");
static const char *dir, *data_path, *copy_path;
static char *buffer;
static uint64_t reads, writes, copies, read_bytes, write_bytes, copy_bytes;

static void moved(const char *what, ssize_t n, uint64_t *calls, uint64_t *bytes)
{
	must(n, what);
	++*calls;
	*bytes += (uint64_t)n;
}

static ssize_t write_by(uint64_t way, int fd)
{
	struct iovec parts[] = {{buffer, size / 2}, {buffer + size / 2, size - size / 2}};

	return way == 0	  ? write(fd, buffer, size)
	       : way == 1 ? pwrite(fd, buffer, size, 0)
	       : way == 2 ? writev(fd, parts, 2)
	       : way == 3 ? pwritev(fd, parts, 2, 0)
			  : pwritev2(fd, parts, 2, 0, 0);
}

static ssize_t read_by(uint64_t way, int fd)
{
	struct iovec parts[] = {{buffer, size / 2}, {buffer + size / 2, size - size / 2}};

	if (way == 4) /* at the end of the file: 0 bytes */
		must(lseek(fd, 0, SEEK_END), "lseek");
	return way == 0	  ? pread(fd, buffer, size, 0)
	       : way == 1 ? readv(fd, parts, 2)
	       : way == 2 ? preadv(fd, parts, 2, 0)
	       : way == 3 ? preadv2(fd, parts, 2, 0, 0)
			  : read(fd, buffer, size);
}

/* From one file to the other: each call reads one and writes the other. */
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
	loff_t at = 0;

	fail_if(pipe(full_pipe) || write(full_pipe[1], fill, sizeof(fill)) != sizeof(fill), "pipe");
	pthread_t drain = wl_thread(drain_later, NULL);
	moved("splice", splice(fd, &at, full_pipe[1], NULL, size, 0), &reads, &read_bytes);
	close(full_pipe[1]);
	pthread_join(drain, NULL);
}

static int workload(void)
{
	dir = wl_make_dir(wl_memory_dir());
	data_path = wl_in(dir, "data");
	copy_path = wl_in(dir, "copy");
	int data = wl_new_file(data_path);
	int copy_to = wl_new_file(copy_path);
	int broken = must(open(data_path, O_WRONLY | O_CLOEXEC), data_path);
	buffer = calloc(1, size);
	wl_ready_with("dir %s data %s", dir, data_path);

	for (uint64_t i = 0; i < count; i++) {
		moved("write", write_by(i % 5, data), &writes, &write_bytes);
		moved("read", read_by(i % 5, data), &reads, &read_bytes);
		check(read(broken, buffer, size) < 0, "a read by a descriptor for writing");
	}
	copy(data, copy_to);
	if (delay_ms)
		read_slowly(data);
	return wl_result("reads %lu writes %lu read_bytes %lu write_bytes %lu copies %lu "
			 "copy_bytes %lu calls %lu results %lu failed %lu returned %lu data %s "
			 "copy %s",
			 reads + copies, writes, read_bytes + copy_bytes, write_bytes, copies,
			 copy_bytes, reads + writes + 2 * copies, reads + writes + copies, count,
			 reads + writes + copies + count, data_path, copy_path);
}
