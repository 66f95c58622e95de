/* Makes a thread wait for kernel locks a known number of times: another thread holds them while it
 * waits for a page of the data that it writes. */
#include "perf.h"

#include <linux/userfaultfd.h>

WL_NUMBER("rounds", rounds, 10, "waits for each of two locks");
WL_NUMBER("ms", hold_ms, 5, "milliseconds of each, at least");
WL_NUMBER("maps", maps, 0, "calls of mmap and munmap afterwards, as many of each");
static int to_holder[2], to_waiter[2];
static int written[2]; /* a pipe, and a file in memory */
static int faults;
static pid_t holder_tid;
static unsigned char *missing;

/* At a given place of the file: for its position kernels may take another lock first (6.12.118 does
 * for files in memory). */
static void write_byte(size_t way, const void *from)
{
	ssize_t n = way ? pwrite(written[way], from, 1, 0) : write(written[way], from, 1);

	fail_if(n != 1, "write");
}

static void *hold(void *unused)
{
	holder_tid = wl_tid();
	wl_tell(to_waiter);
	for (size_t way = 0; way < WL_COUNT(written); way++) {
		for (uint64_t i = 0; i < rounds; i++) {
			wl_hear(to_holder);
			write_byte(way, missing);
			wl_tell(to_waiter);
		}
	}
	return unused;
}

/* Waits until the holder waits for the page, in a state that the kernel shows as S or D. */
static void await_fault(void)
{
	struct uffd_msg message;

	while (read(faults, &message, sizeof(message)) != sizeof(message))
		check(errno == EINTR, "userfaultfd");
}

/* Provides the page when the waiter has waited long enough. */
static void *give_page(void *unused)
{
	struct uffdio_zeropage page = {.range = {(uintptr_t)missing, 4096}};

	wl_nap_ms(hold_ms);
	must(ioctl(faults, UFFDIO_ZEROPAGE, &page), "UFFDIO_ZEROPAGE");
	return unused;
}

static int workload(void)
{
	static const char *const names[] = {"pipe", "file"};
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register area = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	uint64_t waited_ns[WL_COUNT(written)] = {0}, events;
	int pipe_ends[2];

	faults = can(syscall(SYS_userfaultfd, O_CLOEXEC), "userfaultfd");
	can(ioctl(faults, UFFDIO_API, &api), "userfaultfd");
	missing = wl_anonymous(4096);
	area.range.start = (uintptr_t)missing;
	area.range.len = 4096;
	can(ioctl(faults, UFFDIO_REGISTER, &area), "UFFDIO_REGISTER");
	wl_pipe(to_holder);
	wl_pipe(to_waiter);
	wl_pipe(pipe_ends);
	written[0] = pipe_ends[1];
	written[1] = must(memfd_create("contender", 0), "memfd");
	fcntl(written[0], F_SETPIPE_SZ, 1 << 20);
	int event = count_event("/sys/kernel/tracing/events/lock/contention_end/id");
	if (rounds) {
		wl_thread(hold, NULL);
		wl_hear(to_waiter);
	}
	wl_ready_with("holder %d", holder_tid);
	events = counted(event);
	for (size_t way = 0; way < WL_COUNT(written); way++) {
		for (uint64_t i = 0; i < rounds; i++) {
			fail_if(madvise(missing, 4096, MADV_DONTNEED), "madvise");
			wl_tell(to_holder);
			await_fault();
			pthread_t giver = wl_thread(give_page, NULL);
			uint64_t start = wl_now();
			write_byte(way, "x");
			waited_ns[way] += wl_now() - start;
			pthread_join(giver, NULL);
			wl_hear(to_waiter);
		}
	}
	events = counted(event) - events;
	for (uint64_t i = 0; i < maps; i++) {
		void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		fail_if(at == MAP_FAILED || munmap(at, 4096), "mmap");
	}
	for (size_t way = 0; way < WL_COUNT(written); way++)
		wl_object(names[way], "waits %lu waited_ns %lu", rounds, waited_ns[way]);
	return wl_result("waits %lu contention_ends %lu counted %i maps %lu", 2 * rounds, events,
			 event >= 0, maps);
}
