/* Threads or processes that hold one lock in turn, in holders_hold, and record the owner while each
 * of them waited, in holders_wait. */
#include "workload.h"

#include <linux/userfaultfd.h>
#include <sys/file.h>

WL_BOUNDED("members", count, 2, 2, 64, "threads or processes");
WL_BOUNDED("rounds", rounds, 10, 1, 1000, "times that each takes the lock");
WL_NUMBER("ms", hold_ms, 5, "milliseconds that each holds it");
WL_TEXT("lock", kind, "mutex",
	"mutex, pi, robust, flock, fcntl, ofd, pipe (a mutex of the kernel), file (a semaphore of "
	"the kernel) or chain (each holds a mutex and waits for that of the next)");
WL_FLAG("processes", processes, "processes instead of threads");

struct turn {
	uint64_t wait_from, from, until;
};

struct member {
	pid_t tid, pid;
	int fd;
	struct turn turns[1000];
};

static struct shared {
	pthread_mutex_t mutex;
	pthread_barrier_t begin;
	pthread_mutex_t links[64];
	struct member members[64];
} * all;
static int faults, written;
static unsigned char *pages;
static char path[WL_PATH];

static bool is(const char *wanted)
{
	return !strcmp(kind, wanted);
}

static bool by_fault(void)
{
	return is("pipe") || is("file");
}

static void lock_range(struct member *p, short type)
{
	struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = 10, .l_len = 20};

	fail_if(fcntl(p->fd, is("ofd") ? F_OFD_SETLKW : F_SETLKW, &range), "fcntl");
}

WL_FRAME void holders_wait(struct member *p)
{
	WL_KEEP_FRAME();
	if (is("flock")) {
		fail_if(flock(p->fd, LOCK_EX), "flock");
	} else if (is("fcntl") || is("ofd")) {
		lock_range(p, F_WRLCK);
	} else {
		errno = pthread_mutex_lock(&all->mutex);
		fail_if(errno, "mutex");
	}
	__asm__ volatile("");
}

WL_FRAME void holders_hold(void)
{
	WL_KEEP_FRAME();
	wl_nap_ms(hold_ms);
	__asm__ volatile("");
}

static void release(struct member *p)
{
	if (is("flock"))
		fail_if(flock(p->fd, LOCK_UN), "flock");
	else if (is("fcntl") || is("ofd"))
		lock_range(p, F_UNLCK);
	else
		pthread_mutex_unlock(&all->mutex);
}

/* A write takes the lock, then reads the missing page of the member. */
static void write_missing(struct member *p)
{
	unsigned char *page = pages + 4096 * (p - all->members);

	fail_if(madvise(page, 4096, MADV_DONTNEED), "madvise");
	fail_if(write(written, page, 1) != 1, "write");
}

WL_FRAME void holders_link(pthread_mutex_t *next)
{
	WL_KEEP_FRAME();
	pthread_mutex_lock(next);
	__asm__ volatile("");
}

/* The last one only sleeps. */
static void be_a_link(uint64_t number)
{
	pthread_mutex_t *own = &all->links[number], *next = own + 1;

	pthread_mutex_lock(own);
	pthread_barrier_wait(&all->begin);
	pthread_barrier_wait(&all->begin);
	if (number + 1 < count) {
		holders_link(next);
		pthread_mutex_unlock(next);
	} else {
		holders_hold();
	}
	pthread_mutex_unlock(own);
}

static void *take_turns(void *arg)
{
	struct member *p = arg;

	p->tid = wl_tid();
	p->pid = getpid();
	if (path[0])
		p->fd = must(open(path, O_RDWR | O_CLOEXEC), path);
	if (is("chain")) {
		be_a_link(p - all->members);
		return NULL;
	}
	pthread_barrier_wait(&all->begin);
	pthread_barrier_wait(&all->begin);
	for (struct turn *t = p->turns; t < p->turns + rounds; t++) {
		t->wait_from = wl_now();
		if (by_fault()) {
			write_missing(p);
		} else {
			holders_wait(p);
			t->from = wl_now();
			holders_hold();
			t->until = wl_now();
			release(p);
		}
		wl_nap_ms(1);
	}
	return NULL;
}

/* Provides the page of the member that has the lock. */
static void *give_pages(void *unused)
{
	uint64_t done[64] = {0};

	for (;;) {
		struct uffd_msg message;

		if (read(faults, &message, sizeof(message)) != sizeof(message)) {
			check(errno == EINTR, "userfaultfd");
			continue;
		}
		uint64_t at = message.arg.pagefault.address & ~UINT64_C(4095);
		uint64_t number = (at - (uintptr_t)pages) / 4096;
		struct turn *t = &all->members[number].turns[done[number]++];
		struct uffdio_zeropage page = {.range = {at, 4096}};

		t->from = wl_now();
		holders_hold();
		t->until = wl_now();
		must(ioctl(faults, UFFDIO_ZEROPAGE, &page), "UFFDIO_ZEROPAGE");
	}
	return unused;
}

static void make_faults(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register area = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	int ends[2];

	faults = can(syscall(SYS_userfaultfd, O_CLOEXEC), "userfaultfd");
	can(ioctl(faults, UFFDIO_API, &api), "userfaultfd");
	pages = wl_anonymous(4096 * count);
	area.range.start = (uintptr_t)pages;
	area.range.len = 4096 * count;
	can(ioctl(faults, UFFDIO_REGISTER, &area), "UFFDIO_REGISTER");
	wl_pipe(ends);
	fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
	written = is("pipe") ? ends[1] : must(memfd_create("holders", 0), "memfd");
	pthread_detach(wl_thread(give_pages, NULL));
}

static void make_lock(void)
{
	pthread_mutexattr_t attr;
	pthread_barrierattr_t shared;

	pthread_mutexattr_init(&attr);
	if (processes)
		pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (is("pi"))
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	if (is("robust"))
		pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&all->mutex, &attr);
	for (uint64_t i = 0; i < count; i++)
		pthread_mutex_init(&all->links[i], NULL);
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&all->begin, &shared, count + 1);
	if (is("flock") || is("fcntl") || is("ofd")) {
		snprintf(path, sizeof(path), "/tmp/holders-%d", getpid());
		wl_undo(WL_UNDO_UNLINK, 0, path, NULL);
		close(must(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), path));
	}
	if (by_fault())
		make_faults();
}

/* The time that this one waited while that one held the lock. */
static uint64_t waited(const struct member *waiter, const struct member *owner)
{
	uint64_t ns = 0;

	for (const struct turn *w = waiter->turns; w < waiter->turns + rounds; w++) {
		for (const struct turn *o = owner->turns; o < owner->turns + rounds; o++) {
			uint64_t from = o->from > w->wait_from ? o->from : w->wait_from;
			uint64_t until = o->until < w->from ? o->until : w->from;

			if (until > from)
				ns += until - from;
		}
	}
	return ns;
}

static int workload(void)
{
	pthread_t threads[64];
	pid_t children[64];
	uint64_t total = 0;

	all = wl_shared(sizeof(*all));
	make_lock();
	for (uint64_t i = 0; i < count; i++) {
		if (!processes) {
			threads[i] = wl_thread(take_turns, &all->members[i]);
			continue;
		}
		children[i] = wl_fork();
		if (!children[i]) {
			take_turns(&all->members[i]);
			_exit(0);
		}
	}
	pthread_barrier_wait(&all->begin);
	wl_ready_with("address %lu", (uint64_t)(uintptr_t)&all->mutex);
	pthread_barrier_wait(&all->begin);
	for (uint64_t i = 0; i < count; i++) {
		if (processes)
			waitpid(children[i], NULL, 0);
		else
			pthread_join(threads[i], NULL);
	}
	wl_open("pairs", '[');
	for (uint64_t i = 0; i < count && !is("chain"); i++) {
		for (uint64_t j = 0; j < count; j++) {
			uint64_t ns = i == j ? 0 : waited(&all->members[i], &all->members[j]);

			total += ns;
			if (ns)
				wl_object(NULL, "waiter %d owner %d ns %lu", all->members[i].tid,
					  all->members[j].tid, ns);
		}
	}
	wl_close(']');
	wl_pids("tids", &all->members->tid, count, sizeof(*all->members));
	return wl_result("waited_ns %lu", total);
}
