/*
 * A program that lives for milliseconds in a known chain without frame pointers. It is built under
 * two names of equal length: same size, same layout, same tables, other functions.
 *
 *     brief MS [--memfd | --sleep]
 *
 * --memfd: it runs from memory that has no name. --sleep: it waits in the chain instead of working.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
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

static int run_from_memory(char **argv)
{
	int memory = memfd_create("brief", MFD_CLOEXEC), self = open("/proc/self/exe", O_RDONLY);
	struct stat about;

	if (memory < 0 || self < 0 || fstat(self, &about))
		return 1;
	for (off_t from = 0; from < about.st_size;)
		if (sendfile(memory, self, &from, (size_t)(about.st_size - from)) <= 0)
			return 1;
	argv[2] = NULL;
	fexecve(memory, argv, environ);
	return 1;
}

int main(int argc, char **argv)
{
	ms = argc > 1 ? atol(argv[1]) : 1;
	prctl(PR_SET_NAME, TEXT(NAME));
	if (argc > 2 && !strcmp(argv[2], "--memfd"))
		return run_from_memory(argv);
	sleeps = argc > 2 && !strcmp(argv[2], "--sleep");
	JOIN(NAME, _chain)(DEPTH - 1);
	return 0;
}
