/* Tasks that the load average counts: threads that spin, and threads in vfork(), which wait for
 * their children uninterruptibly. */
#include "workload.h"

WL_BOUNDED("spinning", spinning, 2, 0, 100, "threads that spin");
WL_BOUNDED("blocked", blocked, 3, 0, 100, "threads in vfork()");
WL_BOUNDED("ms", run_ms, 0, 0, 60000, "go on so long after the start");
static volatile bool stop;

struct worker {
	pthread_t thread;
	volatile pid_t tid;
};

static void *spin_main(void *arg)
{
	struct worker *w = arg;

	wl_arrive(&w->tid);
	while (!stop)
		workload_spin(100000);
	return NULL;
}

/* The child shares the parent's memory until it exits. */
static void *block_main(void *arg)
{
	struct worker *w = arg;

	wl_arrive(&w->tid);
	pid_t child = vfork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!stop)
			wl_nap_ms(10);
		_exit(0);
	}
	fail_if(child < 0, "vfork");
	waitpid(child, NULL, 0);
	return NULL;
}

static void await_state(pid_t tid, char wanted)
{
	for (int i = 0; wl_state_of(tid) != wanted; i++) {
		if (i == 2000)
			wl_die(WL_FAILED, "thread %d does not come to state %c", tid, wanted);
		wl_nap_ms(5);
	}
}

static int workload(void)
{
	struct worker *workers;
	uint64_t all = spinning + blocked;
	workers = calloc(all, sizeof(*workers));
	for (uint64_t i = 0; i < all; i++)
		workers[i].thread = wl_thread(i < spinning ? spin_main : block_main, &workers[i]);
	wl_wait(&wl_arrived, all);
	for (uint64_t i = 0; i < all; i++)
		await_state(workers[i].tid, i < spinning ? 'R' : 'D');

	wl_pids("spinning", (void *)&workers->tid, spinning, sizeof(*workers));
	wl_pids("blocked", (void *)&workers[spinning].tid, blocked, sizeof(*workers));
	wl_ready();

	wl_nap_ms(run_ms);
	stop = true;
	for (uint64_t i = 0; i < all; i++)
		pthread_join(workers[i].thread, NULL);
	return wl_result("spinning %lu blocked %lu", spinning, blocked);
}
