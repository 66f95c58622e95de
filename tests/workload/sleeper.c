/* Blocks a known number of times in workload_outer -> workload_middle -> workload_sleep. */
#include "workload.h"

static uint64_t sleeps = 50, sleep_ms = 2, threads = 1, spin_ms, cpu = WL_UNSET;
static const char *block_on = "nanosleep";
static sem_t arrived, go;

struct worker {
	pthread_t thread, waker_thread;
	pid_t tid, waker_tid;
	int pipe[2];
	uint64_t slept_ns, longest_ns, spun_cpu_ns;
	struct wl_switches switches;
};

static void work(struct worker *w)
{
	struct wl_switches before = wl_switches_of(w->tid), after;
	uint64_t cpu_ns;

	for (uint64_t i = 0; i < sleeps; i++) {
		uint64_t ns = workload_outer(w->pipe[0], sleep_ms * 1000000);

		w->slept_ns += ns;
		if (ns > w->longest_ns)
			w->longest_ns = ns;
	}
	cpu_ns = wl_clock(CLOCK_THREAD_CPUTIME_ID);
	if (spin_ms)
		workload_spin(spin_ms * 1000000);
	w->spun_cpu_ns = wl_clock(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	after = wl_switches_of(w->tid);
	w->switches.voluntary = after.voluntary - before.voluntary;
	w->switches.nonvoluntary = after.nonvoluntary - before.nonvoluntary;
}

static void arrive(pid_t *tid)
{
	*tid = wl_tid();
	sem_post(&arrived);
	while (sem_wait(&go))
		;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	arrive(&w->tid);
	work(w);
	return NULL;
}

static void *waker_main(void *arg)
{
	struct worker *w = arg;

	arrive(&w->waker_tid);
	for (uint64_t i = 0; i < sleeps; i++) {
		workload_sleep(sleep_ms * 1000000);
		workload_wake(w->pipe[1]);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"sleeps", WL_NUM, &sleeps, "N", "times each thread blocks"},
		{"ms", WL_NUM, &sleep_ms, "T", "milliseconds of each"},
		{"threads", WL_NUM, &threads, "K", "with 1 the main thread does it"},
		{"block-on", WL_STR, &block_on, "WHAT",
		 "nanosleep, or pipe: read what another thread writes"},
		{"spin", WL_NUM, &spin_ms, "MS", "burn CPU afterwards, to be preempted"},
		{"cpu", WL_NUM, &cpu, "N", "pin all threads to this CPU"},
		{0},
	};
	bool on_pipe;
	uint64_t expected = 0, slept_ns = 0, voluntary = 0, nonvoluntary = 0;
	struct worker *workers;

	wl_start(argc, argv, "sleeper", "Blocks N times T milliseconds in known functions.", opts);
	on_pipe = !strcmp(block_on, "pipe");
	if (!on_pipe && strcmp(block_on, "nanosleep"))
		wl_die(WL_USAGE, "--block-on: nanosleep or pipe");
	if (threads < 1 || threads > 1000 || sleep_ms > 60000 || spin_ms > 60000)
		wl_die(WL_USAGE, "want 1 to 1000 threads and at most 60000 ms");
	if (cpu != WL_UNSET)
		wl_pin((int)cpu);
	workers = calloc(threads, sizeof(*workers));
	sem_init(&arrived, 0, 0);
	sem_init(&go, 0, 0);
	for (uint64_t i = 0; i < threads; i++) {
		struct worker *w = &workers[i];

		w->pipe[0] = w->pipe[1] = -1;
		w->tid = wl_tid();
		if (on_pipe && pipe2(w->pipe, O_CLOEXEC))
			wl_die(WL_FAILED, "pipe: %m");
		if (threads > 1 && ++expected && pthread_create(&w->thread, NULL, worker_main, w))
			wl_die(WL_FAILED, "cannot make thread %llu", (unsigned long long)i);
		if (on_pipe && ++expected && pthread_create(&w->waker_thread, NULL, waker_main, w))
			wl_die(WL_FAILED, "cannot make waker %llu", (unsigned long long)i);
	}
	for (uint64_t i = 0; i < expected; i++)
		while (sem_wait(&arrived))
			;

	wl_ready_begin();
	wl_open("tids", '[');
	for (uint64_t i = 0; i < threads; i++)
		wl_i64(NULL, workers[i].tid);
	wl_close(']');
	wl_ready_end();

	for (uint64_t i = 0; i < expected; i++)
		sem_post(&go);
	if (threads == 1)
		work(&workers[0]);
	for (uint64_t i = 0; i < threads; i++) {
		if (threads > 1)
			pthread_join(workers[i].thread, NULL);
		if (on_pipe)
			pthread_join(workers[i].waker_thread, NULL);
	}

	wl_line_begin();
	wl_str("block_on", block_on);
	wl_open("threads", '[');
	for (uint64_t i = 0; i < threads; i++) {
		struct worker *w = &workers[i];

		wl_open(NULL, '{');
		wl_i64("tid", w->tid);
		wl_u64("sleeps", sleeps);
		wl_u64("slept_ns", w->slept_ns);
		wl_u64("longest_ns", w->longest_ns);
		wl_u64("spun_cpu_ns", w->spun_cpu_ns);
		wl_u64("voluntary", w->switches.voluntary);
		wl_u64("nonvoluntary", w->switches.nonvoluntary);
		if (on_pipe)
			wl_i64("waker_tid", w->waker_tid);
		wl_close('}');
		slept_ns += w->slept_ns;
		voluntary += w->switches.voluntary;
		nonvoluntary += w->switches.nonvoluntary;
	}
	wl_close(']');
	wl_u64("sleeps", sleeps * threads);
	wl_u64("slept_ns", slept_ns);
	wl_u64("voluntary", voluntary);
	wl_u64("nonvoluntary", nonvoluntary);
	wl_finish();
	return WL_OK;
}
