/*
 * Makes a thread wait for locks of the kernel a known number of times: another one holds them while
 * it waits for a page of what it writes.
 */
#include "workload.h"

#include <linux/perf_event.h>
#include <linux/userfaultfd.h>

static uint64_t rounds = 10, hold_ms = 5, maps;
static int to_holder[2], to_waiter[2];
static int written[2]; /* a pipe, and a file in memory */
static pid_t holder_tid;
static unsigned char *missing;

static void tell(int pipe[2])
{
	if (write(pipe[1], "x", 1) != 1)
		wl_die(WL_FAILED, "pipe: %m");
}

static void hear(int pipe[2])
{
	char byte;

	while (read(pipe[0], &byte, 1) != 1)
		if (errno != EINTR)
			wl_die(WL_FAILED, "pipe: %m");
}

static void *hold(void *unused)
{
	holder_tid = wl_tid();
	tell(to_waiter);
	for (size_t way = 0; way < WL_COUNT(written); way++) {
		for (uint64_t i = 0; i < rounds; i++) {
			hear(to_holder);
			if (write(written[way], missing, 1) != 1)
				wl_die(WL_FAILED, "write: %m");
			tell(to_waiter);
		}
	}
	return unused;
}

/* Of all threads that are made from now on, and of this one; -1: the kernel has no such event. */
static int count_waits(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .inherit = 1};
	char text[32];

	if (wl_slurp("/sys/kernel/tracing/events/lock/contention_end/id", text, sizeof(text)) <= 0)
		return -1;
	attr.config = strtoull(text, NULL, 10);
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static uint64_t counted(int event)
{
	uint64_t n = 0;

	if (event < 0 || read(event, &n, sizeof(n)) != sizeof(n))
		return 0;
	return n;
}

/* The holder waits for the page, in a state that the kernel shows as S or D. */
static void await_fault(int faults)
{
	struct uffd_msg message;

	while (read(faults, &message, sizeof(message)) != sizeof(message))
		if (errno != EINTR)
			wl_die(WL_FAILED, "userfaultfd: %m");
}

struct give {
	int faults;
	pthread_t thread;
};

/* Gives the page when the waiter has waited long enough. */
static void *give_page(void *arg)
{
	struct give *g = arg;
	struct uffdio_zeropage page = {.range = {(uintptr_t)missing, 4096}};

	wl_nap_ms((unsigned int)hold_ms);
	if (ioctl(g->faults, UFFDIO_ZEROPAGE, &page))
		wl_die(WL_FAILED, "UFFDIO_ZEROPAGE: %m");
	return NULL;
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"rounds", WL_NUM, &rounds, "N", "waits for each of two locks"},
		{"ms", WL_NUM, &hold_ms, "T", "milliseconds of each, at least"},
		{"maps", WL_NUM, &maps, "N",
		 "calls of mmap and munmap afterwards, as many of each"},
		{0},
	};
	static const char *const names[] = {"pipe", "file"};
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register area = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	uint64_t waited_ns[WL_COUNT(written)] = {0}, events;
	struct give g;
	pthread_t holder;
	int pipe_ends[2], event;

	wl_start(argc, argv, "contender", "Waits N times for each of two locks of the kernel.",
		 opts);
	g.faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (g.faults < 0 || ioctl(g.faults, UFFDIO_API, &api))
		wl_die(WL_CANNOT, "userfaultfd: %m");
	missing = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (missing == MAP_FAILED)
		wl_die(WL_FAILED, "mmap: %m");
	area.range.start = (uintptr_t)missing;
	area.range.len = 4096;
	if (ioctl(g.faults, UFFDIO_REGISTER, &area))
		wl_die(WL_CANNOT, "UFFDIO_REGISTER: %m");
	written[1] = (int)syscall(SYS_memfd_create, "contender", 0);
	if (pipe2(to_holder, O_CLOEXEC) || pipe2(to_waiter, O_CLOEXEC) ||
	    pipe2(pipe_ends, O_CLOEXEC) || written[1] < 0)
		wl_die(WL_FAILED, "pipe: %m");
	written[0] = pipe_ends[1];
	fcntl(written[0], F_SETPIPE_SZ, 1 << 20);
	event = count_waits();
	if (rounds && pthread_create(&holder, NULL, hold, NULL))
		wl_die(WL_FAILED, "cannot make a thread");
	if (rounds)
		hear(to_waiter);
	wl_ready_begin();
	wl_i64("holder", holder_tid);
	wl_ready_end();
	events = counted(event);
	for (size_t way = 0; way < WL_COUNT(written); way++) {
		for (uint64_t i = 0; i < rounds; i++) {
			uint64_t start;

			if (madvise(missing, 4096, MADV_DONTNEED))
				wl_die(WL_FAILED, "madvise: %m");
			tell(to_holder);
			await_fault(g.faults);
			if (pthread_create(&g.thread, NULL, give_page, &g))
				wl_die(WL_FAILED, "cannot make a thread");
			start = wl_now();
			if (write(written[way], "x", 1) != 1)
				wl_die(WL_FAILED, "write: %m");
			waited_ns[way] += wl_now() - start;
			pthread_join(g.thread, NULL);
			hear(to_waiter);
		}
	}
	events = counted(event) - events;
	for (uint64_t i = 0; i < maps; i++) {
		void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED || munmap(at, 4096))
			wl_die(WL_FAILED, "mmap: %m");
	}
	wl_line_begin();
	for (size_t way = 0; way < WL_COUNT(written); way++) {
		wl_open(names[way], '{');
		wl_u64("waits", rounds);
		wl_u64("waited_ns", waited_ns[way]);
		wl_close('}');
	}
	wl_u64("waits", 2 * rounds);
	wl_u64("contention_ends", events);
	wl_bool("counted", event >= 0);
	wl_u64("maps", maps);
	wl_finish();
	return WL_OK;
}
