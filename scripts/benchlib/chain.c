/* chain DEPTH COUNT WAYS: calls DEPTH different functions, there makes a copy of itself and hands it a byte, to and fro,
 * COUNT times, waiting for it in WAYS places by turns (1 or 2); prints the seconds. The frames are of many sizes; whether
 * they have frame pointers is the compiler's option. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define DEEPEST 112

static uint64_t count, ways;
static int there[2], back[2];
static volatile uint64_t kept;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void must(int ok)
{
	if (!ok)
		_exit(1);
}

/* Stacks that differ in one address. */
__attribute__((noinline)) static void wait_for(int from)
{
	static uint64_t turn;
	char byte;

	if (turn++ % ways) {
		must(read(from, &byte, 1) == 1);
		__asm__ volatile("");
	} else {
		must(read(from, &byte, 1) == 1);
		__asm__ volatile("nop");
	}
}

__attribute__((noinline)) static void bottom(void)
{
	double start;
	pid_t other;

	must(!pipe(there) && !pipe(back));
	start = seconds();
	other = fork();
	must(other >= 0);
	if (!other)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint64_t i = 0; i < count; i++) {
		if (other) {
			must(write(there[1], "", 1) == 1);
			wait_for(back[0]);
		} else {
			wait_for(there[0]);
			must(write(back[1], "", 1) == 1);
		}
	}
	if (!other)
		_exit(0);
	printf("%f\n", seconds() - start);
}

#define CALLS(n, next, size)                                \
	__attribute__((noinline)) static void call_##n(void) \
	{                                                   \
		char block[size];                           \
		uint64_t saved = kept;                      \
		__asm__ volatile("" : : "r"(block) : "memory"); \
		next();                                     \
		kept = saved;                               \
	}
#define SEVEN(n, next)                   \
	CALLS(n##0, next, 8)             \
	CALLS(n##1, call_##n##0, 24)     \
	CALLS(n##2, call_##n##1, 40)     \
	CALLS(n##3, call_##n##2, 72)     \
	CALLS(n##4, call_##n##3, 104)    \
	CALLS(n##5, call_##n##4, 152)    \
	CALLS(n##6, call_##n##5, 248)
#define NAMES(n) call_##n##0, call_##n##1, call_##n##2, call_##n##3, call_##n##4, call_##n##5, call_##n##6

SEVEN(a, bottom)
SEVEN(b, call_a6)
SEVEN(c, call_b6)
SEVEN(d, call_c6)
SEVEN(e, call_d6)
SEVEN(f, call_e6)
SEVEN(g, call_f6)
SEVEN(h, call_g6)
SEVEN(i, call_h6)
SEVEN(j, call_i6)
SEVEN(k, call_j6)
SEVEN(l, call_k6)
SEVEN(m, call_l6)
SEVEN(n, call_m6)
SEVEN(o, call_n6)
SEVEN(p, call_o6)

static void (*const calls[DEEPEST])(void) = { NAMES(a), NAMES(b), NAMES(c), NAMES(d), NAMES(e), NAMES(f),
					      NAMES(g), NAMES(h), NAMES(i), NAMES(j), NAMES(k), NAMES(l),
					      NAMES(m), NAMES(n), NAMES(o), NAMES(p) };

int main(int argc, char **argv)
{
	long depth = argc == 4 ? atol(argv[1]) : 0;
	struct sched_param none = { 0 };

	if (depth < 1 || depth > DEEPEST)
		return 2;
	count = strtoull(argv[2], NULL, 10);
	ways = strtoull(argv[3], NULL, 10);
	if (!ways)
		return 2;
	prctl(PR_SET_NAME, "chain"); /* whatever the file's name */
	sched_setscheduler(0, SCHED_BATCH, &none); /* the one that writes is not preempted: only those that read wait */
	calls[depth - 1]();
	return 0;
}
