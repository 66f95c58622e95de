/* Blocks a known number of times in victim_outer -> victim_middle -> victim_sleep. */
#include "victim.h"

static uint64_t sleeps = 50, sleep_ms = 2, threads = 1, spin_ms, cpu = VT_UNSET;
static const char *block_on = "nanosleep";
static sem_t arrived, go;

struct worker {
	pthread_t thread, waker_thread;
	pid_t tid, waker_tid;
	int pipe[2];
	uint64_t slept_ns, longest_ns, spun_cpu_ns;
	struct vt_switches switches;
};

static void work(struct worker *w)
{
	struct vt_switches before = vt_switches_of(w->tid), after;
	uint64_t cpu_ns;

	for (uint64_t i = 0; i < sleeps; i++) {
		uint64_t ns = victim_outer(w->pipe[0], sleep_ms * 1000000);

		w->slept_ns += ns;
		if (ns > w->longest_ns)
			w->longest_ns = ns;
	}
	cpu_ns = vt_clock(CLOCK_THREAD_CPUTIME_ID);
	if (spin_ms)
		victim_spin(spin_ms * 1000000);
	w->spun_cpu_ns = vt_clock(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	after = vt_switches_of(w->tid);
	w->switches.voluntary = after.voluntary - before.voluntary;
	w->switches.nonvoluntary = after.nonvoluntary - before.nonvoluntary;
}

static void arrive(pid_t *tid)
{
	*tid = vt_tid();
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
		victim_sleep(sleep_ms * 1000000);
		victim_wake(w->pipe[1]);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct vt_opt opts[] = {
		{"sleeps", VT_NUM, &sleeps, "N", "times each thread blocks"},
		{"ms", VT_NUM, &sleep_ms, "T", "milliseconds of each"},
		{"threads", VT_NUM, &threads, "K", "with 1 the main thread does it"},
		{"block-on", VT_STR, &block_on, "WHAT",
		 "nanosleep, or pipe: read what another thread writes"},
		{"spin", VT_NUM, &spin_ms, "MS", "burn CPU afterwards, to be preempted"},
		{"cpu", VT_NUM, &cpu, "N", "pin all threads to this CPU"},
		{0},
	};
	bool on_pipe;
	uint64_t expected = 0, slept_ns = 0, voluntary = 0, nonvoluntary = 0;
	struct worker *workers;

	vt_start(argc, argv, "sleeper", "Blocks N times T milliseconds in known functions.", opts);
	on_pipe = !strcmp(block_on, "pipe");
	if (!on_pipe && strcmp(block_on, "nanosleep"))
		vt_die(VT_USAGE, "--block-on: nanosleep or pipe");
	if (threads < 1 || threads > 1000 || sleep_ms > 60000 || spin_ms > 60000)
		vt_die(VT_USAGE, "want 1 to 1000 threads and at most 60000 ms");
	if (cpu != VT_UNSET)
		vt_pin((int)cpu);
	workers = calloc(threads, sizeof(*workers));
	sem_init(&arrived, 0, 0);
	sem_init(&go, 0, 0);
	for (uint64_t i = 0; i < threads; i++) {
		struct worker *w = &workers[i];

		w->pipe[0] = w->pipe[1] = -1;
		w->tid = vt_tid();
		if (on_pipe && pipe2(w->pipe, O_CLOEXEC))
			vt_die(VT_FAILED, "pipe: %m");
		if (threads > 1 && ++expected && pthread_create(&w->thread, NULL, worker_main, w))
			vt_die(VT_FAILED, "cannot make thread %llu", (unsigned long long)i);
		if (on_pipe && ++expected && pthread_create(&w->waker_thread, NULL, waker_main, w))
			vt_die(VT_FAILED, "cannot make waker %llu", (unsigned long long)i);
	}
	for (uint64_t i = 0; i < expected; i++)
		while (sem_wait(&arrived))
			;

	vt_ready_begin();
	vt_open("tids", '[');
	for (uint64_t i = 0; i < threads; i++)
		vt_i64(NULL, workers[i].tid);
	vt_close(']');
	vt_ready_end();

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

	vt_line_begin();
	vt_str("block_on", block_on);
	vt_open("threads", '[');
	for (uint64_t i = 0; i < threads; i++) {
		struct worker *w = &workers[i];

		vt_open(NULL, '{');
		vt_i64("tid", w->tid);
		vt_u64("sleeps", sleeps);
		vt_u64("slept_ns", w->slept_ns);
		vt_u64("longest_ns", w->longest_ns);
		vt_u64("spun_cpu_ns", w->spun_cpu_ns);
		vt_u64("voluntary", w->switches.voluntary);
		vt_u64("nonvoluntary", w->switches.nonvoluntary);
		if (on_pipe)
			vt_i64("waker_tid", w->waker_tid);
		vt_close('}');
		slept_ns += w->slept_ns;
		voluntary += w->switches.voluntary;
		nonvoluntary += w->switches.nonvoluntary;
	}
	vt_close(']');
	vt_u64("sleeps", sleeps * threads);
	vt_u64("slept_ns", slept_ns);
	vt_u64("voluntary", voluntary);
	vt_u64("nonvoluntary", nonvoluntary);
	vt_finish();
	return VT_OK;
}
