/* Waits for futexes a known number of times, in every way, in waiter_outer -> waiter_wait. */
#include "workload.h"

#include <linux/futex.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif

#define WAITV_SECOND 1

struct waiter_waitv {
	uint64_t val, uaddr;
	uint32_t flags, reserved;
};

static uint64_t count = 20, timeout_ms = 2;
static const char *only, *op;
static uint32_t words[8];
static volatile uint64_t interrupted;
static pid_t main_tid;
static int to_helper[2], to_main[2];

WL_FRAME long waiter_wait(long nr, long a, long b, long c, long d, long e, long f)
{
	WL_KEEP_FRAME();
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
#else
	long ret = syscall(nr, a, b, c, d, e, f);

	return ret < 0 ? -errno : ret;
#endif
}

WL_FRAME long waiter_outer(long nr, long a, long b, long c, long d, long e, long f)
{
	long ret = waiter_wait(nr, a, b, c, d, e, f);

	__asm__ volatile("");
	return ret;
}

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	return waiter_outer(SYS_futex, (long)word, op, value, (long)timeout, 0,
			    FUTEX_BITSET_MATCH_ANY);
}

static long wait_woken(void)
{
	return futex(&words[0], FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL);
}

static long wait_bitset_woken(void)
{
	return futex(&words[1], FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, NULL);
}

static long waitv_woken(void)
{
	struct waiter_waitv list[] = {
		{0, (uint64_t)(uintptr_t)&words[2], 2 /* 32 bits */, 0},
		{0, (uint64_t)(uintptr_t)&words[3], 2, 0},
	};

	return waiter_outer(SYS_futex_waitv, (long)list, WL_COUNT(list), 0, 0, 0, 0);
}

static long futex_wait_woken(void)
{
	return waiter_outer(SYS_futex_wait, (long)&words[4], 0, UINT32_MAX, 2, 0, 0);
}

static long lock_pi_woken(void)
{
	long ret = futex(&words[5], FUTEX_LOCK_PI, 0, NULL);

	if (!ret)
		syscall(SYS_futex, &words[5], FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
	return ret;
}

static long wait_timeout(void)
{
	struct timespec t = {.tv_sec = (time_t)(timeout_ms / 1000),
			     .tv_nsec = (long)(timeout_ms % 1000 * 1000000)};

	return futex(&words[0], FUTEX_WAIT, 0, &t);
}

static long wait_bitset_timeout(void)
{
	struct timespec t;
	uint64_t until = wl_now() + timeout_ms * 1000000;

	t.tv_sec = (time_t)(until / WL_NSEC);
	t.tv_nsec = (long)(until % WL_NSEC);
	return futex(&words[1], FUTEX_WAIT_BITSET, 0, &t);
}

static long wait_changed(void)
{
	return futex(&words[0], FUTEX_WAIT, 1, NULL);
}

static long wait_interrupted(void)
{
	long ret = futex(&words[6], FUTEX_WAIT, 0, NULL);

	interrupted = interrupted + 1;
	return ret;
}

static void tell(int pipe[2])
{
	if (write(pipe[1], "x", 1) != 1)
		wl_die(WL_FAILED, "pipe: %m");
}

static void hear(int pipe[2])
{
	char byte;

	if (read(pipe[0], &byte, 1) != 1)
		wl_die(WL_FAILED, "pipe: %m");
}

static void wake(uint32_t *word)
{
	while (syscall(SYS_futex, word, FUTEX_WAKE | (word < &words[2] ? FUTEX_PRIVATE_FLAG : 0), 1,
		       NULL, NULL, 0) != 1)
		sched_yield();
}

/* Holds the lock until the waiter waits for it. */
static void hold_pi(uint32_t *word)
{
	uint32_t free = 0;

	while (!__atomic_compare_exchange_n(word, &free, (uint32_t)wl_tid(), false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		free = 0;
		sched_yield();
	}
	tell(to_main);
	while (!(__atomic_load_n(word, __ATOMIC_SEQ_CST) & FUTEX_WAITERS))
		sched_yield();
	syscall(SYS_futex, word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
}

static const struct way {
	const char *op, *result;
	long (*wait)(void);
	long ret;
	int word;
	bool may_lack;
} ways[] = {
	{"wait", "woken", wait_woken, 0, 0, false},
	{"wait_bitset", "woken", wait_bitset_woken, 0, 1, false},
	{"waitv", "woken", waitv_woken, WAITV_SECOND, 2 + WAITV_SECOND, true},
	{"futex_wait", "woken", futex_wait_woken, 0, 4, true},
	{"lock_pi", "woken", lock_pi_woken, 0, 5, false},
	{"wait", "timeout", wait_timeout, -ETIMEDOUT, 0, false},
	{"wait_bitset", "timeout", wait_bitset_timeout, -ETIMEDOUT, 1, false},
	{"wait", "changed", wait_changed, -EAGAIN, 0, false},
	{"wait", "interrupted", wait_interrupted, -EINTR, 6, false},
};

static bool wanted(const struct way *w)
{
	static int lacks[2] = {-1, -1};
	int *l = &lacks[w->word == 4];

	if ((only && strcmp(only, w->result)) || (op && strcmp(op, w->op)))
		return false;
	if (!w->may_lack)
		return true;
	if (*l < 0)
		*l = syscall(w->word == 4 ? SYS_futex_wait : SYS_futex_waitv, 0, 0, 0, 0, 0, 0) &&
		     errno == ENOSYS;
	return !*l;
}

/* Ends the waits of main(), which makes as many of each. */
static void *help(void *unused)
{
	const struct timespec pause = {.tv_nsec = 200000};

	hear(to_helper);
	for (const struct way *w = ways; w < ways + WL_COUNT(ways); w++) {
		if (!wanted(w))
			continue;
		for (uint64_t i = 0; i < count; i++) {
			if (!strcmp(w->op, "lock_pi"))
				hold_pi(&words[w->word]);
			else if (!strcmp(w->result, "woken"))
				wake(&words[w->word]);
		}
		if (strcmp(w->result, "interrupted"))
			continue;
		hear(to_helper);
		while (interrupted < count) {
			syscall(SYS_tgkill, getpid(), main_tid, SIGUSR1);
			nanosleep(&pause, NULL);
		}
	}
	return unused;
}

static void on_signal(int number)
{
	(void)number;
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"count", WL_NUM, &count, "N", "waits of each kind"},
		{"ms", WL_NUM, &timeout_ms, "T", "milliseconds of waits that time out"},
		{"only", WL_STR, &only, "RESULT", "woken, timeout, changed or interrupted"},
		{"op", WL_STR, &op, "NAME", "wait, wait_bitset, waitv, futex_wait or lock_pi"},
		{0},
	};
	struct sigaction action = {.sa_handler = on_signal};
	uint64_t waits = 0, waited_ns = 0;
	pthread_t helper;
	pthread_attr_t detached;
	sigset_t usr1;

	wl_start(argc, argv, "waiter", "Waits for futexes N times in each way.", opts);
	main_tid = wl_tid();
	sigaction(SIGUSR1, &action, NULL);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	if (pipe2(to_helper, O_CLOEXEC) || pipe2(to_main, O_CLOEXEC))
		wl_die(WL_FAILED, "pipe: %m");
	for (const struct way *w = ways; w < ways + WL_COUNT(ways); w++)
		wanted(w); /* asks the kernel now, while nothing traces */
	if (pthread_create(&helper, &detached, help, NULL))
		wl_die(WL_FAILED, "cannot make a thread");
	wl_ready_begin();
	wl_u64("words", (uint64_t)(uintptr_t)words);
	wl_ready_end();
	tell(to_helper);
	wl_line_begin();
	wl_open("ways", '[');
	for (const struct way *w = ways; w < ways + WL_COUNT(ways); w++) {
		uint64_t start, ns = 0;

		if (!wanted(w))
			continue;
		if (!strcmp(w->result, "interrupted"))
			tell(to_helper);
		for (uint64_t i = 0; i < count; i++) {
			long ret;

			if (!strcmp(w->op, "lock_pi"))
				hear(to_main);
			start = wl_now();
			ret = w->wait();
			ns += wl_now() - start;
			if (ret != w->ret)
				wl_die(WL_FAILED, "%s %s: %ld", w->op, w->result, ret);
		}
		wl_open(NULL, '{');
		wl_str("op", w->op);
		wl_str("result", w->result);
		wl_u64("lock", (uint64_t)(uintptr_t)&words[w->word]);
		wl_u64("count", count);
		wl_u64("waited_ns", ns);
		wl_close('}');
		waits += count;
		waited_ns += ns;
	}
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	wl_close(']');
	wl_u64("waits", waits);
	wl_u64("waited_ns", waited_ns);
	wl_finish();
	return WL_OK;
}
