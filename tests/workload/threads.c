/* Creates threads one after another: by the C library, and without it. */
#include "workload.h"

#define STACK_BYTES (64 << 10)

WL_BOUNDED("count", count, 20, 0, 100000, "threads by pthread_create()");
WL_BOUNDED("raw", raw, 0, 0, 100000, "then threads by clone()");
WL_NUMBER("ms", ms, 0, "rest so long before the end");
static pid_t *tids;
static pid_t gone; /* 0: the raw thread has ended; set by the kernel */

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
	must(clone(raw_main, stack + STACK_BYTES,
		   CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			   CLONE_SYSVSEM | CLONE_CHILD_CLEARTID,
		   tid, NULL, NULL, &gone),
	     "clone");
	while (__atomic_load_n(&gone, __ATOMIC_ACQUIRE))
		sched_yield();
}

static int workload(void)
{
	tids = calloc(count + raw + 1, sizeof(*tids));
	char *stack = malloc(STACK_BYTES);
	check(tids && stack, "memory");
	wl_ready();
	for (uint64_t i = 0; i < count; i++)
		wl_threads(1, threads_main, &tids[i], 0);
	for (uint64_t i = 0; i < raw; i++)
		make_raw(&tids[count + i], stack);
	wl_nap_ms(ms);
	wl_pids("tids", tids, count + raw, sizeof(*tids));
	return wl_result("threads %lu by_library %lu", count + raw, count);
}
