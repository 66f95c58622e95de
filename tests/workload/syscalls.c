/* Makes a known number of system calls, some of which fail with a known error. */
#include "workload.h"

#include <sys/time.h>

static const uint64_t failing = 30, forks = 2;
WL_NUMBER("calls", calls, 100, "number of getppid() calls");
WL_NUMBER("sleeps", sleeps, 3, "number of clock_nanosleep() calls");
WL_NUMBER("ms", sleep_ms, 20, "milliseconds of each");
WL_NUMBER("signals", signals, 4, "reads that a signal ends");
WL_NUMBER("restarts", restarts, 1, "sleeps that are stopped in between");
WL_NUMBER("rounds", rounds, 1, "how often all of this, without stops");
WL_NUMBER("steps", steps, 0, "nanosleep() calls of 1 ms, 2 ms, and so on");
WL_FLAG("compat", compat, "getppid of the 32-bit table as often");

static void on_alarm(int)
{
}

/* Repeatedly: one may arrive before the call that it is to interrupt. */
static void alarms(unsigned int ms)
{
	struct timeval every = {.tv_usec = ms * 1000};
	struct itimerval timer = {.it_value = every, .it_interval = every};

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* A read of an empty pipe, ended by the signal's handler. */
static void interrupted_reads(uint64_t count)
{
	struct sigaction action = {.sa_handler = on_alarm}, old;
	int ends[2];
	char byte;

	if (!count)
		return;
	wl_pipe(ends);
	sigaction(SIGALRM, &action, &old);
	alarms(5);
	for (uint64_t i = 0; i < count; i++)
		fail_if(syscall(SYS_read, ends[0], &byte, 1) != -1 || errno != EINTR,
			"a read was not interrupted");
	alarms(0);
	sigaction(SIGALRM, &old, NULL);
	alarm((unsigned int)wl_timeout_s);
	close(ends[0]);
	close(ends[1]);
}

/* A sleep that a stop interrupts; it is restarted without a handler. */
static uint64_t restarted_sleeps(uint64_t count, unsigned int ms)
{
	struct timespec t = {.tv_nsec = (long)ms * 1000000};
	pid_t self = getpid(), child;
	uint64_t slept = 0, before;

	for (uint64_t i = 0; i < count; i++) {
		child = wl_fork();
		if (!child) {
			wl_nap_ms(ms / 4);
			kill(self, SIGSTOP);
			wl_nap_ms(ms / 4);
			kill(self, SIGCONT);
			_exit(0);
		}
		before = wl_now();
		fail_if(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL),
			"clock_nanosleep");
		slept += wl_now() - before;
		wl_reap(child);
	}
	return slept;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* The times of these sleeps, sorted. */
static uint64_t *stepped_sleeps(void)
{
	uint64_t *times = calloc(steps + 1, sizeof(*times)), before;
	struct timespec t;

	check(times, "calloc");
	for (uint64_t i = 0; i < steps; i++) {
		t = wl_timespec((i + 1) * 1000000);
		before = wl_now();
		syscall(SYS_nanosleep, &t, NULL);
		times[i] = wl_now() - before;
	}
	qsort(times, steps, sizeof(*times), ascending);
	return times;
}

/* The time that `percent` of the sorted times do not exceed. */
static uint64_t percentile(const uint64_t *times, uint64_t percent)
{
	uint64_t rank = (steps * percent + 99) / 100;

	return times[rank ? rank - 1 : 0];
}

/* By the entry to the table for 32-bit programs, with its numbers, such as 64: getppid. */
static long call32(long number)
{
#ifdef __x86_64__
	long result;

	asm volatile("int $0x80" : "=a"(result) : "a"(number) : "r8", "r9", "r10", "r11", "memory");
	return result;
#else
	return -ENOSYS + 0 * number;
#endif
}

static int workload(void)
{
	struct timespec t;
	uint64_t slept = 0, before, total = 0, *times;

	lacks_if(compat && call32(64) != getppid(), "no table for 32-bit programs here");
	wl_ready();

	for (uint64_t round = 0; round < rounds; round++) {
		for (uint64_t i = 0; i < calls; i++)
			syscall(SYS_getppid);
		for (uint64_t i = 0; compat && i < calls; i++)
			call32(64);
		for (uint64_t i = 0; i < failing; i++)
			check(syscall(SYS_unlinkat, AT_FDCWD, "/no/such/directory", AT_REMOVEDIR) ==
				      -1,
			      "unlinkat");
		for (uint64_t i = 0; i < failing / 2; i++)
			check(syscall(SYS_fchdir, -1) == -1, "fchdir");
		t = wl_timespec(sleep_ms * 1000000);
		for (uint64_t i = 0; i < sleeps; i++) {
			before = wl_now();
			syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
			slept += wl_now() - before;
		}
		for (uint64_t i = 0; i < forks; i++) {
			pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

			if (!child)
				_exit(0);
			waitpid(child, NULL, 0);
		}
		interrupted_reads(signals);
	}
	slept += restarted_sleeps(restarts, 40);
	times = stepped_sleeps();
	for (uint64_t i = 0; i < steps; i++)
		total += times[i];

	return wl_result("steps %lu steps_ns %lu steps_p1_ns %lu steps_p50_ns %lu steps_p95_ns %lu "
			 "steps_p99_ns %lu steps_p100_ns %lu calls %lu failed %lu bad_descriptors "
			 "%lu forks %lu sleeps %lu "
			 "asked_ns %lu slept_ns %lu interrupted %lu stops %lu",
			 steps, total, percentile(times, 1), percentile(times, 50),
			 percentile(times, 95), percentile(times, 99), percentile(times, 100),
			 rounds * calls, rounds * failing, rounds * (failing / 2), rounds * forks,
			 rounds * sleeps + restarts,
			 (rounds * sleeps * sleep_ms + restarts * 40) * 1000000, slept,
			 rounds * signals, restarts);
}
