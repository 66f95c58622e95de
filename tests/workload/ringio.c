/* Reads, writes and flushes a file by all operations of io_uring, a known number of times. */
#include "workload.h"

#include <linux/io_uring.h>
#include <sys/uio.h>

#define ENTRIES 64
#define MAX_SIZE 65536
#define FIXED_BUFFER 0 /* its number, and that of the registered file */
#define SYNCS_DATA 2   /* RWF_DSYNC */
#define SYNCS 4	       /* RWF_SYNC */
#define AT_POSITION UINT64_MAX

WL_NUMBER("rounds", rounds, 10, "of 8 writes, a flush, 7 reads and a failure");
WL_BOUNDED("size", size, 4096, 1, MAX_SIZE, "of each read and write");
WL_FLAG("direct", direct, "rounds of 3 reads past the page cache instead");
WL_FLAG("same-data", same_data, "all requests have the same user_data");
WL_NUMBER("lives", lives, 0, "files that it also creates and removes");
WL_NUMBER("delay", delay_ms, 0, "also a read that waits so long for another");
static const char *dir = "", *data_path;
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

static void *map_ring(size_t bytes, off_t offset)
{
	const int flags = MAP_SHARED | MAP_POPULATE;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, ring, offset);

	check(at != MAP_FAILED, "mmap of the ring");
	return at;
}

static void set_up(void)
{
	struct io_uring_params p = {0};

	ring = can(syscall(SYS_io_uring_setup, ENTRIES, &p), "io_uring_setup");
	void *sq = map_ring(p.sq_off.array + p.sq_entries * sizeof(int), IORING_OFF_SQ_RING);
	void *cq = map_ring(p.cq_off.cqes + p.cq_entries * sizeof(*complete.entries),
			    IORING_OFF_CQ_RING);
	submit.entries = map_ring(p.sq_entries * sizeof(*submit.entries), IORING_OFF_SQES);
	submit.head = sq + p.sq_off.head;
	submit.tail = sq + p.sq_off.tail;
	submit.array = sq + p.sq_off.array;
	submit.mask = *(unsigned int *)(sq + p.sq_off.ring_mask);
	complete.head = cq + p.cq_off.head;
	complete.tail = cq + p.cq_off.tail;
	complete.mask = *(unsigned int *)(cq + p.cq_off.ring_mask);
	complete.entries = cq + p.cq_off.cqes;
}

static void register_with_ring(unsigned int what, void *list)
{
	cannot_if(syscall(SYS_io_uring_register, ring, what, list, 1), "io_uring_register");
}

static unsigned int waiting; /* filled in, not submitted */

static struct io_uring_sqe *next(enum kind kind, unsigned int opcode, int fd, uint64_t offset,
				 const void *at, size_t length)
{
	unsigned int index = (*submit.tail + waiting) & submit.mask;

	submit.entries[index] = (struct io_uring_sqe){
		.opcode = (uint8_t)opcode,
		.fd = fd,
		.off = offset,
		.addr = (uintptr_t)at,
		.len = (unsigned int)length,
		.user_data = same_data ? 7 : submitted++ << 8 | waiting,
	};
	submit.array[index] = index;
	kinds[waiting++] = kind;
	return &submit.entries[index];
}

static struct io_uring_sqe *plain(enum kind kind, unsigned int opcode, int fd, uint64_t offset)
{
	return next(kind, opcode, fd, offset, buffer, size);
}

static void in_parts(enum kind kind, unsigned int opcode, uint64_t offset)
{
	next(kind, opcode, data, offset, parts, WL_COUNT(parts));
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

/* Submits everything filled in, and waits until it has ended. */
static void go(void)
{
	unsigned int left = waiting;

	__atomic_store_n(submit.tail, *submit.tail + waiting, __ATOMIC_RELEASE);
	cannot_if(syscall(SYS_io_uring_enter, ring, waiting, 0, 0, NULL, 0) != (long)waiting,
		  "io_uring_enter");
	while (left) {
		unsigned int head = *complete.head;

		if (head == __atomic_load_n(complete.tail, __ATOMIC_ACQUIRE)) {
			fail_if(syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS,
					NULL, 0) < 0 &&
					errno != EINTR,
				"io_uring_enter");
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
	next(FLUSHES, IORING_OP_FSYNC, data, 0, NULL, 0);
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

/* Bypassing the page cache, so that /proc/self/io counts each byte. */
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
	wl_tell(delayed);
	return unused;
}

/* Linked to the read of a pipe that gets data later. */
static void read_late(void)
{
	static char byte;

	wl_pipe(delayed);
	pthread_t writer = wl_thread(write_later, NULL);
	next(OTHERS, IORING_OP_READ, delayed[0], 0, &byte, 1)->flags = IOSQE_IO_LINK;
	plain(READS, IORING_OP_READ, data, 0);
	go();
	pthread_join(writer, NULL);
}

/* A file that the ring creates and removes. */
static void live_once(const char *path)
{
	next(OTHERS, IORING_OP_OPENAT, AT_FDCWD, 0, path, 0600)->open_flags =
		O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC;
	go();
	close(last_result);
	next(OTHERS, IORING_OP_UNLINKAT, AT_FDCWD, 0, path, 0);
	go();
}

static uint64_t bytes_from_disk(void)
{
	char text[512];
	uint64_t n = 0;

	lacks_if(wl_slurp("/proc/self/io", text, sizeof(text)) < 0 ||
			 !wl_lookup(text, "read_bytes", &n),
		 "/proc/self/io does not tell bytes");
	return n;
}

static void open_data(void)
{
	static char on_disk[WL_PATH];

	if (direct) {
		data_path = on_disk;
		data = wl_temp_file(wl_disk_dir(NULL), O_DIRECT, on_disk);
	} else {
		dir = wl_make_dir(wl_memory_dir());
		data_path = wl_in(dir, "data");
		data = wl_new_file(data_path);
	}
	for (int i = 0; i < (direct ? 3 : 8); i++)
		cannot_if(pwrite(data, buffer, size, i * (off_t)size) != (ssize_t)size, data_path);
	if (direct)
		fsync(data);
}

static int workload(void)
{
	uint64_t from_disk = 0;

	set_up();
	fail_if(posix_memalign((void **)&buffer, 4096, MAX_SIZE), "memory");
	memset(buffer, 'x', MAX_SIZE);
	whole = (struct iovec){buffer, MAX_SIZE};
	parts[0] = (struct iovec){buffer, size / 2};
	parts[1] = (struct iovec){buffer + size / 2, size - size / 2};
	open_data();
	register_with_ring(IORING_REGISTER_BUFFERS, &whole);
	register_with_ring(IORING_REGISTER_FILES, &data);
	wl_ready_with("dir %s data %s", dir, data_path);

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
	for (uint64_t i = 0; i < lives; i++)
		live_once(wl_format("%s.short-lived", data_path));
	if (delay_ms)
		read_late();
	if (direct)
		from_disk = bytes_from_disk() - from_disk;
	return wl_result("reads %lu writes %lu read_bytes %lu write_bytes %lu flushes %lu "
			 "failed %lu calls %lu dsyncs %lu syncs %lu from_disk %lu dir %s data %s",
			 ended[READS], ended[WRITES], bytes[READS], bytes[WRITES], ended[FLUSHES],
			 ended[FAILURES], ended[READS] + ended[WRITES], dsyncs, syncs, from_disk,
			 dir, data_path);
}
