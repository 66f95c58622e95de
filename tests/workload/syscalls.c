/* Makes a known number of system calls, some of which fail with a known error. */
#include "workload.h"

#include <sys/time.h>

static uint64_t calls = 100, failing = 30, sleeps = 3, sleep_ms = 20, forks = 2, signals = 4;
static uint64_t restarts = 1, rounds = 1;
static bool compat;

static void on_alarm(int number)
{
	(void)number;
}

/* Again and again: one may come before the call that it is to interrupt. */
static void alarms(unsigned int ms)
{
	struct timeval every = {.tv_usec = ms * 1000};
	struct itimerval timer = {.it_value = every, .it_interval = every};

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* A read of an empty pipe that the signal's handler ends. */
static void interrupted_reads(uint64_t count)
{
	struct sigaction action = {.sa_handler = on_alarm}, old;
	int ends[2];
	char byte;

	if (!count)
		return;
	if (pipe2(ends, O_CLOEXEC))
		wl_die(WL_FAILED, "pipe: %m");
	sigaction(SIGALRM, &action, &old);
	alarms(5);
	for (uint64_t i = 0; i < count; i++) {
		if (syscall(SYS_read, ends[0], &byte, 1) != -1 || errno != EINTR)
			wl_die(WL_FAILED, "a read was not interrupted: %m");
	}
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
		if (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL))
			wl_die(WL_FAILED, "clock_nanosleep: %m");
		slept += wl_now() - before;
		wl_reap(child);
	}
	return slept;
}

#ifdef __x86_64__
/* By the door that leads to the table for 32-bit programs; its numbers, such as 64: getppid. */
static long call32(long number)
{
	long result;

	asm volatile("int $0x80" : "=a"(result) : "a"(number) : "r8", "r9", "r10", "r11", "memory");
	return result;
}
#else
static long call32(long number)
{
	(void)number;
	return -ENOSYS;
}
#endif

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"calls", WL_NUM, &calls, "N", "number of getppid() calls"},
		{"failing", WL_NUM, &failing, "N",
		 "rmdir() of nothing: ENOENT; half as many: EBADF"},
		{"sleeps", WL_NUM, &sleeps, "N", "number of clock_nanosleep() calls"},
		{"ms", WL_NUM, &sleep_ms, "T", "milliseconds of each"},
		{"forks", WL_NUM, &forks, "N", "children"},
		{"signals", WL_NUM, &signals, "N", "reads that a signal ends"},
		{"restarts", WL_NUM, &restarts, "N", "sleeps that are stopped in between"},
		{"rounds", WL_NUM, &rounds, "N", "how often all of this, without stops"},
		{"compat", WL_FLAG, &compat, NULL, "getppid of the 32-bit table as often"},
		{0},
	};
	struct timespec t;
	uint64_t slept = 0, before;

	wl_start(argc, argv, "syscalls", "Makes a known number of system calls.", opts);
	if (compat && call32(64) != getppid())
		wl_die(WL_CANNOT, "no table for 32-bit programs here");
	wl_ready();

	for (uint64_t round = 0; round < rounds; round++) {
		for (uint64_t i = 0; i < calls; i++)
			syscall(SYS_getppid);
		for (uint64_t i = 0; compat && i < calls; i++)
			call32(64);
		for (uint64_t i = 0; i < failing; i++)
			if (syscall(SYS_unlinkat, AT_FDCWD, "/no/such/directory", AT_REMOVEDIR) !=
			    -1)
				wl_die(WL_FAILED, "unlinkat did not fail");
		for (uint64_t i = 0; i < failing / 2; i++)
			if (syscall(SYS_fchdir, -1) != -1)
				wl_die(WL_FAILED, "fchdir did not fail");
		t = (struct timespec){.tv_sec = (time_t)(sleep_ms / 1000),
				      .tv_nsec = (long)(sleep_ms % 1000) * 1000000};
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

	wl_line_begin();
	wl_u64("calls", rounds * calls);
	wl_u64("failed", rounds * failing);
	wl_u64("bad_descriptors", rounds * (failing / 2));
	wl_u64("forks", rounds * forks);
	wl_u64("sleeps", rounds * sleeps + restarts);
	wl_u64("asked_ns", (rounds * sleeps * sleep_ms + restarts * 40) * 1000000);
	wl_u64("slept_ns", slept);
	wl_u64("interrupted", rounds * signals);
	wl_u64("stops", restarts);
	wl_finish();
	return WL_OK;
}
