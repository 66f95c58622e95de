/*
 * A program that runs for milliseconds in a known call chain without frame pointers. It is built
 * under two names of equal length: same size, same layout, same tables, other functions; and with
 * the musl C library, which has no unwind tables.
 *
 *     brief MS [--sleep | --callers]
 *
 * --sleep: it waits in the chain instead of working.
 * --callers: the chain also below a signal handler and in a thread.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define FRAME __attribute__((noinline, noipa, used))
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)
#define DEPTH 10

static long ms;
static int sleeps;

static long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

FRAME void JOIN(NAME, _leaf)(void)
{
	long end = now_us() + ms * 1000;
	volatile int work = 0;

	if (sleeps) {
		usleep((useconds_t)ms * 1000);
		return;
	}
	while (now_us() < end)
		for (int i = 0; i < 10000; i++)
			work = work + i;
}

FRAME void JOIN(NAME, _chain)(int n)
{
	char room[120];

	__asm__ volatile("" : : "r"(room) : "memory");
	if (n)
		JOIN(NAME, _chain)(n - 1);
	else
		JOIN(NAME, _leaf)();
	__asm__ volatile("" : : "r"(room) : "memory");
}

FRAME void JOIN(NAME, _handler)(int number)
{
	JOIN(NAME, _chain)(DEPTH - 1);
	__asm__ volatile("" : : "r"(number));
}

FRAME void *JOIN(NAME, _thread)(void *arg)
{
	JOIN(NAME, _chain)(DEPTH - 1);
	__asm__ volatile("");
	return arg;
}

static int by_other_callers(void)
{
	pthread_t thread;

	signal(SIGUSR1, JOIN(NAME, _handler));
	raise(SIGUSR1);
	return pthread_create(&thread, NULL, JOIN(NAME, _thread), NULL) ||
	       pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	ms = argc > 1 ? atol(argv[1]) : 1;
	prctl(PR_SET_NAME, TEXT(NAME));
	sleeps = argc > 2 && !strcmp(argv[2], "--sleep");
	JOIN(NAME, _chain)(DEPTH - 1);
	return argc > 2 && !strcmp(argv[2], "--callers") ? by_other_callers() : 0;
}
