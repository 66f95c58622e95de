/* Blocks a known number of times in workload_outer -> workload_middle -> workload_sleep. */
#include "workload.h"

WL_NUMBER("sleeps", sleeps, 50, "times each thread blocks");
WL_BOUNDED("ms", sleep_ms, 2, 0, 60000, "milliseconds of each");
WL_BOUNDED("threads", threads, 1, 1, 1000, "with 1 the main thread does it");
WL_TEXT("block-on", block_on, "nanosleep", "nanosleep, or pipe: what another thread writes");
WL_BOUNDED("spin", spin_ms, 0, 0, 60000, "burn CPU afterwards, to be preempted");
WL_NUMBER("cpu", cpu, WL_UNSET, "pin all threads to this CPU");
static bool on_pipe;

struct worker {
	pthread_t thread, waker_thread;
	pid_t tid, waker_tid;
	int pipe[2];
	uint64_t slept_ns, spun_cpu_ns;
	struct wl_switches switches;
};

static void work(struct worker *w)
{
	struct wl_switches before = wl_switches_of(w->tid);

	for (uint64_t i = 0; i < sleeps; i++)
		w->slept_ns += workload_outer(w->pipe[0], sleep_ms * 1000000);
	uint64_t cpu_ns = wl_clock(CLOCK_THREAD_CPUTIME_ID);
	if (spin_ms)
		workload_spin(spin_ms * 1000000);
	w->spun_cpu_ns = wl_clock(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	w->switches = wl_switches_since(before, w->tid);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	wl_arrive(&w->tid);
	wl_wait(&wl_gate, 1);
	work(w);
	return NULL;
}

static void *waker_main(void *arg)
{
	struct worker *w = arg;

	wl_arrive(&w->waker_tid);
	wl_wait(&wl_gate, 1);
	for (uint64_t i = 0; i < sleeps; i++) {
		workload_sleep(sleep_ms * 1000000);
		workload_wake(w->pipe[1]);
	}
	return NULL;
}

static int workload(void)
{
	uint64_t slept_ns = 0, voluntary = 0, nonvoluntary = 0;
	struct worker *workers;

	on_pipe = !strcmp(block_on, "pipe");
	wl_one_of("block-on", block_on, "nanosleep pipe");
	if (cpu != WL_UNSET)
		wl_pin((int)cpu);
	workers = calloc(threads, sizeof(*workers));
	for (struct worker *w = workers; w < workers + threads; w++) {
		w->pipe[0] = w->pipe[1] = -1;
		w->tid = wl_tid();
		if (on_pipe)
			wl_pipe(w->pipe);
		if (threads > 1)
			w->thread = wl_thread(worker_main, w);
		if (on_pipe)
			w->waker_thread = wl_thread(waker_main, w);
	}
	uint64_t expected = (threads > 1 ? threads : 0) + (on_pipe ? threads : 0);
	wl_wait(&wl_arrived, expected);

	wl_pids("tids", &workers->tid, threads, sizeof(*workers));
	wl_ready();

	wl_post(&wl_gate, expected);
	if (threads == 1)
		work(&workers[0]);
	for (uint64_t i = 0; i < threads; i++) {
		if (threads > 1)
			pthread_join(workers[i].thread, NULL);
		if (on_pipe)
			pthread_join(workers[i].waker_thread, NULL);
	}

	wl_open("threads", '[');
	for (struct worker *w = workers; w < workers + threads; w++) {
		wl_open(NULL, '{');
		wl_fields("tid %d sleeps %lu slept_ns %lu spun_cpu_ns %lu voluntary %lu "
			  "nonvoluntary %lu",
			  w->tid, sleeps, w->slept_ns, w->spun_cpu_ns, w->switches.voluntary,
			  w->switches.nonvoluntary);
		if (on_pipe)
			wl_i64("waker_tid", w->waker_tid);
		wl_close('}');
		slept_ns += w->slept_ns;
		voluntary += w->switches.voluntary;
		nonvoluntary += w->switches.nonvoluntary;
	}
	wl_close(']');
	return wl_result("sleeps %lu slept_ns %lu voluntary %lu nonvoluntary %lu", sleeps * threads,
			 slept_ns, voluntary, nonvoluntary);
}
