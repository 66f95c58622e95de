/* A known chain below main, in a thread and in a signal handler of a program with the musl C
 * library, which has no unwind tables of its own; built without the headers that the other
 * workloads need. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define FRAME __attribute__((noinline, noipa, used))
#define DEPTH 10

static long ms;

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

FRAME void musl_spin(void)
{
	long end = now_ms() + ms;
	volatile int work = 0;

	while (now_ms() < end)
		for (int i = 0; i < 100000; i++)
			work = work + i;
}

FRAME void musl_chain(int n)
{
	char room[100];

	if (n)
		musl_chain(n - 1);
	else
		musl_spin();
	__asm__ volatile("" : : "r"(room) : "memory");
}

FRAME void musl_handler(int number)
{
	musl_chain(DEPTH - 1);
	__asm__ volatile("" : : "r"(number));
}

FRAME void *musl_thread(void *arg)
{
	musl_chain(DEPTH - 1);
	__asm__ volatile("");
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	ms = argc > 1 ? atol(argv[1]) : 200;
	musl_chain(DEPTH - 1);
	signal(SIGUSR1, musl_handler);
	raise(SIGUSR1);
	if (pthread_create(&thread, NULL, musl_thread, NULL) || pthread_join(thread, NULL))
		return 1;
	return 0;
}
