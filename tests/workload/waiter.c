/* Waits for futexes a known number of times, by every operation, in waiter_outer -> waiter_wait. */
#include "workload.h"

#include <linux/futex.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif

#define WAITV_SECOND 1
#define NEW_CALL -1 /* not of futex(2) */

struct waiter_waitv {
	uint64_t val, uaddr;
	uint32_t flags, reserved;
};

WL_NUMBER("count", count, 20, "waits of each kind");
WL_NUMBER("ms", timeout_ms, 2, "milliseconds of waits that time out");
WL_TEXT("only", only, NULL, "woken, timeout, changed or interrupted");
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

static const struct way {
	const char *op, *result;
	int word, futex;
	uint32_t value;
	bool times_out;
	long ret;
} ways[] = {
	{"wait", "woken", 0, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, false, 0},
	{"wait_bitset", "woken", 1, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, false, 0},
	{"waitv", "woken", 2 + WAITV_SECOND, NEW_CALL, 0, false, WAITV_SECOND},
	{"futex_wait", "woken", 4, NEW_CALL, 0, false, 0},
	{"lock_pi", "woken", 5, FUTEX_LOCK_PI, 0, false, 0},
	{"wait", "timeout", 0, FUTEX_WAIT, 0, true, -ETIMEDOUT},
	{"wait_bitset", "timeout", 1, FUTEX_WAIT_BITSET, 0, true, -ETIMEDOUT},
	{"wait", "changed", 0, FUTEX_WAIT, 1, false, -EAGAIN},
	{"wait", "interrupted", 6, FUTEX_WAIT, 0, false, -EINTR},
};

static long wait_in(const struct way *w)
{
	uint64_t from = w->futex == FUTEX_WAIT_BITSET ? wl_now() : 0;
	struct timespec limit = wl_timespec(from + timeout_ms * 1000000);
	struct waiter_waitv list[] = {
		{0, (uint64_t)(uintptr_t)&words[2], 2 /* 32 bits */, 0},
		{0, (uint64_t)(uintptr_t)&words[3], 2, 0},
	};
	long ret;

	if (w->word == 4)
		return waiter_outer(SYS_futex_wait, (long)&words[4], 0, UINT32_MAX, 2, 0, 0);
	if (w->futex == NEW_CALL)
		return waiter_outer(SYS_futex_waitv, (long)list, WL_COUNT(list), 0, 0, 0, 0);
	ret = waiter_outer(SYS_futex, (long)&words[w->word], w->futex, w->value,
			   w->times_out ? (long)&limit : 0, 0, FUTEX_BITSET_MATCH_ANY);
	if (w->futex == FUTEX_LOCK_PI && !ret)
		syscall(SYS_futex, &words[w->word], FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
	if (w->ret == -EINTR)
		interrupted = interrupted + 1;
	return ret;
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
	wl_tell(to_main);
	while (!(__atomic_load_n(word, __ATOMIC_SEQ_CST) & FUTEX_WAITERS))
		sched_yield();
	syscall(SYS_futex, word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
}

static bool wanted(const struct way *w)
{
	static int lacks[2] = {-1, -1};
	int *l = &lacks[w->word == 4];

	if (only && strcmp(only, w->result))
		return false;
	if (w->futex != NEW_CALL)
		return true;
	if (*l < 0)
		*l = syscall(w->word == 4 ? SYS_futex_wait : SYS_futex_waitv, 0, 0, 0, 0, 0, 0) &&
		     errno == ENOSYS;
	return !*l;
}

/* Ends the waits of main(), which makes the same number of each. */
static void *help(void *unused)
{
	const struct timespec pause = {.tv_nsec = 200000};

	wl_hear(to_helper);
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
		wl_hear(to_helper);
		while (interrupted < count) {
			syscall(SYS_tgkill, getpid(), main_tid, SIGUSR1);
			nanosleep(&pause, NULL);
		}
	}
	return unused;
}

static void on_signal(int)
{
}

static int workload(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	uint64_t waits = 0, waited_ns = 0;
	sigset_t usr1;

	main_tid = wl_tid();
	sigaction(SIGUSR1, &action, NULL);
	wl_pipe(to_helper);
	wl_pipe(to_main);
	for (const struct way *w = ways; w < ways + WL_COUNT(ways); w++)
		wanted(w); /* asks the kernel before tracing starts */
	pthread_detach(wl_thread(help, NULL));
	wl_ready_with("words %lu", (uint64_t)(uintptr_t)words);
	wl_tell(to_helper);
	wl_open("ways", '[');
	for (const struct way *w = ways; w < ways + WL_COUNT(ways); w++) {
		uint64_t start, ns = 0;

		if (!wanted(w))
			continue;
		if (!strcmp(w->result, "interrupted"))
			wl_tell(to_helper);
		for (uint64_t i = 0; i < count; i++) {
			if (!strcmp(w->op, "lock_pi"))
				wl_hear(to_main);
			start = wl_now();
			long ret = wait_in(w);
			ns += wl_now() - start;
			if (ret != w->ret)
				wl_die(WL_FAILED, "%s %s: %ld", w->op, w->result, ret);
		}
		wl_object(NULL, "op %s result %s lock %lu count %lu waited_ns %lu", w->op,
			  w->result, (uint64_t)(uintptr_t)&words[w->word], count, ns);
		waits += count;
		waited_ns += ns;
	}
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	wl_close(']');
	return wl_result("waits %lu waited_ns %lu", waits, waited_ns);
}
