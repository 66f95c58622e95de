/* Reads, writes and flushes a file through io_uring in all ways that there are, a known number of
 * times. */
#include "workload.h"

#include <linux/io_uring.h>
#include <sys/uio.h>

#define ENTRIES 64
#define MAX_SIZE 65536
#define FIXED_BUFFER 0 /* its number, and that of the registered file */
#define SYNCS_DATA 2   /* RWF_DSYNC */
#define SYNCS 4	       /* RWF_SYNC */
#define AT_POSITION UINT64_MAX

static uint64_t rounds = 10, size = 4096, delay_ms, lives;
static bool direct, same_data;
static char dir[64], data_path[WL_PATH];
static char *buffer;
static struct iovec parts[2], whole;
static int ring, data, last_result;

static struct {
	unsigned int *head, *tail, *array, mask;
	struct io_uring_sqe *entries;
} submit;

static struct {
	unsigned int *head, *tail, mask;
	struct io_uring_cqe *entries;
} complete;

enum kind { READS, WRITES, FLUSHES, FAILURES, OTHERS, KINDS };
static uint64_t ended[KINDS], bytes[KINDS], dsyncs, syncs, submitted;
static enum kind kinds[ENTRIES]; /* of the batch */

static void set_up(void)
{
	struct io_uring_params p = {0};
	char *sq, *cq;

	ring = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
	if (ring < 0)
		wl_die(WL_CANNOT, "io_uring_setup: %m");
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(unsigned int),
		  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_CQ_RING);
	submit.entries =
		mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || submit.entries == MAP_FAILED)
		wl_die(WL_FAILED, "mmap of the ring: %m");
	submit.head = (void *)(sq + p.sq_off.head);
	submit.tail = (void *)(sq + p.sq_off.tail);
	submit.array = (void *)(sq + p.sq_off.array);
	submit.mask = *(unsigned int *)(sq + p.sq_off.ring_mask);
	complete.head = (void *)(cq + p.cq_off.head);
	complete.tail = (void *)(cq + p.cq_off.tail);
	complete.mask = *(unsigned int *)(cq + p.cq_off.ring_mask);
	complete.entries = (void *)(cq + p.cq_off.cqes);
}

static void register_with_ring(unsigned int what, void *list)
{
	if (syscall(SYS_io_uring_register, ring, what, list, 1))
		wl_die(WL_CANNOT, "io_uring_register: %m");
}

static unsigned int waiting; /* filled in, not submitted */

static struct io_uring_sqe *next(enum kind kind, unsigned int opcode, int fd, uint64_t offset)
{
	unsigned int at = (*submit.tail + waiting) & submit.mask;
	struct io_uring_sqe *sqe = &submit.entries[at];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = (uint8_t)opcode;
	sqe->fd = fd;
	sqe->off = offset;
	sqe->user_data = same_data ? 7 : submitted++ << 8 | waiting;
	submit.array[at] = at;
	kinds[waiting++] = kind;
	return sqe;
}

static struct io_uring_sqe *plain(enum kind kind, unsigned int opcode, int fd, uint64_t offset)
{
	struct io_uring_sqe *sqe = next(kind, opcode, fd, offset);

	sqe->addr = (uintptr_t)buffer;
	sqe->len = (unsigned int)size;
	return sqe;
}

static struct io_uring_sqe *in_parts(enum kind kind, unsigned int opcode, uint64_t offset)
{
	struct io_uring_sqe *sqe = next(kind, opcode, data, offset);

	sqe->addr = (uintptr_t)parts;
	sqe->len = WL_COUNT(parts);
	return sqe;
}

static void ended_with(const struct io_uring_cqe *cqe)
{
	enum kind kind = same_data ? kinds[0] : kinds[cqe->user_data & 0xff];

	if (kind == FAILURES ? cqe->res != -EFAULT : cqe->res < 0)
		wl_die(WL_CANNOT, "a request of sort %d: %s", kind, strerror(-cqe->res));
	ended[kind]++;
	last_result = cqe->res;
	bytes[kind] += cqe->res > 0 ? (uint64_t)cqe->res : 0;
}

/* All that is filled in, until it has ended. */
static void go(void)
{
	unsigned int left = waiting;

	__atomic_store_n(submit.tail, *submit.tail + waiting, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, waiting, 0, 0, NULL, 0) != (long)waiting)
		wl_die(WL_CANNOT, "io_uring_enter: %m");
	while (left) {
		unsigned int head = *complete.head;

		if (head == __atomic_load_n(complete.tail, __ATOMIC_ACQUIRE)) {
			if (syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL,
				    0) < 0 &&
			    errno != EINTR)
				wl_die(WL_FAILED, "io_uring_enter: %m");
			continue;
		}
		ended_with(&complete.entries[head & complete.mask]);
		__atomic_store_n(complete.head, head + 1, __ATOMIC_RELEASE);
		left--;
	}
	waiting = 0;
}

static void write_in_all_ways(void)
{
	plain(WRITES, IORING_OP_WRITE, data, 0);
	in_parts(WRITES, IORING_OP_WRITEV, size);
	plain(WRITES, IORING_OP_WRITE_FIXED, data, 2 * size)->buf_index = FIXED_BUFFER;
	plain(WRITES, IORING_OP_WRITE, FIXED_BUFFER, 3 * size)->flags = IOSQE_FIXED_FILE;
	plain(WRITES, IORING_OP_WRITE, data, 4 * size)->flags = IOSQE_ASYNC;
	plain(WRITES, IORING_OP_WRITE, data, AT_POSITION);
	plain(WRITES, IORING_OP_WRITE, data, 6 * size)->rw_flags = SYNCS_DATA;
	plain(WRITES, IORING_OP_WRITE, data, 7 * size)->rw_flags = SYNCS_DATA | SYNCS;
	dsyncs++;
	syncs++;
	go();
	next(FLUSHES, IORING_OP_FSYNC, data, 0);
	go();
}

/* The last one at the end of the file: 0 bytes. */
static void read_in_all_ways(void)
{
	plain(READS, IORING_OP_READ, data, 0);
	in_parts(READS, IORING_OP_READV, size);
	plain(READS, IORING_OP_READ_FIXED, data, 2 * size)->buf_index = FIXED_BUFFER;
	plain(READS, IORING_OP_READ, FIXED_BUFFER, 3 * size)->flags = IOSQE_FIXED_FILE;
	plain(READS, IORING_OP_READ, data, 4 * size)->flags = IOSQE_ASYNC;
	plain(READS, IORING_OP_READ, data, AT_POSITION);
	plain(READS, IORING_OP_READ, data, rounds * size + 8 * size);
	go();
	plain(FAILURES, IORING_OP_READ, data, 0)->addr = 8;
	go();
}

/* Past the page cache, so that /proc/self/io counts each byte. */
static void read_directly(void)
{
	plain(READS, IORING_OP_READ, data, 0);
	plain(READS, IORING_OP_READ, data, size)->flags = IOSQE_ASYNC;
	plain(READS, IORING_OP_READ_FIXED, data, 2 * size)->buf_index = FIXED_BUFFER;
	go();
}

static int delayed[2];

static void *write_later(void *unused)
{
	usleep((useconds_t)delay_ms * 1000);
	if (write(delayed[1], "x", 1) != 1)
		wl_die(WL_FAILED, "pipe: %m");
	return unused;
}

/* Linked to the read of a pipe that has something later. */
static void read_late(void)
{
	struct io_uring_sqe *sqe;
	static char byte;
	pthread_t writer;

	if (pipe(delayed) || pthread_create(&writer, NULL, write_later, NULL))
		wl_die(WL_FAILED, "no pipe or thread");
	sqe = next(OTHERS, IORING_OP_READ, delayed[0], 0);
	sqe->addr = (uintptr_t)&byte;
	sqe->len = 1;
	sqe->flags = IOSQE_IO_LINK;
	plain(READS, IORING_OP_READ, data, 0);
	go();
	pthread_join(writer, NULL);
}

/* A file that the ring creates and removes. */
static void live_once(const char *path)
{
	struct io_uring_sqe *sqe = next(OTHERS, IORING_OP_OPENAT, AT_FDCWD, 0);

	sqe->addr = (uintptr_t)path;
	sqe->open_flags = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC;
	sqe->len = 0600;
	go();
	close(last_result);
	sqe = next(OTHERS, IORING_OP_UNLINKAT, AT_FDCWD, 0);
	sqe->addr = (uintptr_t)path;
	go();
}

static uint64_t bytes_from_disk(void)
{
	char text[512];
	uint64_t n = 0;

	if (wl_slurp("/proc/self/io", text, sizeof(text)) < 0 || !wl_lookup(text, "read_bytes", &n))
		wl_die(WL_CANNOT, "/proc/self/io does not tell bytes");
	return n;
}

static void open_data(void)
{
	char *fill = calloc(8, size);

	if (direct) {
		data = wl_temp_file(wl_disk_dir(NULL), O_DIRECT, data_path, sizeof(data_path));
		for (int i = 0; i < 3; i++)
			if (pwrite(data, buffer, size, i * (off_t)size) != (ssize_t)size)
				wl_die(WL_CANNOT, "%s: %m", data_path);
		fsync(data);
	} else {
		snprintf(dir, sizeof(dir), "%s/ringio-%d",
			 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", getpid());
		snprintf(data_path, sizeof(data_path), "%s/data", dir);
		if (mkdir(dir, 0700))
			wl_die(WL_FAILED, "%s: %m", dir);
		wl_undo(WL_UNDO_RMDIR, 0, dir, NULL);
		wl_undo(WL_UNDO_UNLINK, 0, data_path, NULL);
		data = open(data_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (data < 0 || pwrite(data, fill, 8 * size, 0) != (ssize_t)(8 * size))
			wl_die(WL_FAILED, "%s: %m", data_path);
	}
	free(fill);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"rounds", WL_NUM, &rounds, "N", "of 8 writes, a flush, 7 reads and a failure"},
		{"size", WL_NUM, &size, "BYTES", "of each read and write"},
		{"direct", WL_FLAG, &direct, NULL, "rounds of 3 reads past the page cache instead"},
		{"same-data", WL_FLAG, &same_data, NULL, "all requests have the same user_data"},
		{"lives", WL_NUM, &lives, "N", "files that it also creates and removes"},
		{"delay", WL_NUM, &delay_ms, "MS", "also a read that waits so long for another"},
		{0},
	};
	char path[WL_PATH + 16];
	uint64_t from_disk = 0;

	wl_start(argc, argv, "ringio", "Reads and writes a file through io_uring.", opts);
	if (!size || size > MAX_SIZE)
		wl_die(WL_USAGE, "--size: want 1 to %d", MAX_SIZE);
	set_up();
	if (posix_memalign((void **)&buffer, 4096, MAX_SIZE))
		wl_die(WL_FAILED, "no memory");
	memset(buffer, 'x', MAX_SIZE);
	whole = (struct iovec){buffer, MAX_SIZE};
	parts[0] = (struct iovec){buffer, size / 2};
	parts[1] = (struct iovec){buffer + size / 2, size - size / 2};
	open_data();
	register_with_ring(IORING_REGISTER_BUFFERS, &whole);
	register_with_ring(IORING_REGISTER_FILES, &data);
	wl_ready_begin();
	wl_str("dir", dir);
	wl_str("data", data_path);
	wl_ready_end();

	if (direct)
		from_disk = bytes_from_disk();
	for (uint64_t i = 0; i < rounds; i++) {
		if (direct) {
			read_directly();
		} else {
			write_in_all_ways();
			read_in_all_ways();
		}
	}
	snprintf(path, sizeof(path), "%s.short-lived", data_path);
	for (uint64_t i = 0; i < lives; i++)
		live_once(path);
	if (delay_ms)
		read_late();
	if (direct)
		from_disk = bytes_from_disk() - from_disk;
	wl_line_begin();
	wl_u64("reads", ended[READS]);
	wl_u64("writes", ended[WRITES]);
	wl_u64("read_bytes", bytes[READS]);
	wl_u64("write_bytes", bytes[WRITES]);
	wl_u64("flushes", ended[FLUSHES]);
	wl_u64("failed", ended[FAILURES]);
	wl_u64("calls", ended[READS] + ended[WRITES]);
	wl_u64("dsyncs", dsyncs);
	wl_u64("syncs", syncs);
	wl_u64("from_disk", from_disk);
	wl_str("dir", dir);
	wl_str("data", data_path);
	wl_finish();
	return WL_OK;
}
