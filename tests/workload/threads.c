/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes threads one after another: by the C library, and without it. */
#include "workload.h"

#define STACK_BYTES (64 << 10)
#define MOST 100000

static uint64_t count = 20, raw, ms;
static pid_t *tids;
static pid_t gone; /* 0: the raw thread has ended; the kernel says so */

WL_FRAME void *threads_main(void *tid)
{
	*(pid_t *)tid = wl_tid();
	return NULL;
}

static int raw_main(void *tid)
{
	*(pid_t *)tid = (pid_t)syscall(SYS_gettid);
	return 0;
}

static void make_raw(pid_t *tid, char *stack)
{
	gone = 1;
	if (clone(raw_main, stack + STACK_BYTES,
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
			  CLONE_CHILD_CLEARTID,
		  tid, NULL, NULL, &gone) < 0)
		wl_die(WL_FAILED, "clone: %m");
	while (__atomic_load_n(&gone, __ATOMIC_ACQUIRE))
		sched_yield();
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"count", WL_NUM, &count, "N", "threads by pthread_create()"},
		{"raw", WL_NUM, &raw, "N", "then threads by clone()"},
		{"ms", WL_NUM, &ms, "D", "rest so long before the end"},
		{0},
	};
	char *stack;

	wl_start(argc, argv, "threads", "Makes threads one after another.", opts);
	if (count + raw > MOST)
		wl_die(WL_USAGE, "want at most %d threads", MOST);
	tids = calloc(count + raw + 1, sizeof(*tids));
	stack = malloc(STACK_BYTES);
	if (!tids || !stack)
		wl_die(WL_FAILED, "no memory");
	wl_ready();
	for (uint64_t i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, threads_main, &tids[i]) ||
		    pthread_join(thread, NULL))
			wl_die(WL_FAILED, "cannot make thread %llu", (unsigned long long)i);
	}
	for (uint64_t i = 0; i < raw; i++)
		make_raw(&tids[count + i], stack);
	wl_nap_ms((unsigned int)ms);
	wl_line_begin();
	wl_u64("threads", count + raw);
	wl_u64("by_library", count);
	wl_open("tids", '[');
	for (uint64_t i = 0; i < count + raw; i++)
		wl_i64(NULL, tids[i]);
	wl_close(']');
	wl_finish();
	return WL_OK;
}
