/* Busy threads share one CPU, so that they wait for it; the kernel's own sum of the wait is truth.
 */
#include "workload.h"

static uint64_t threads = 4, run_ms = 500, cpu = WL_UNSET;
static sem_t arrived, go, done, leave;
static volatile uint64_t deadline;

struct schedstat {
	uint64_t on_cpu_ns, run_delay_ns, timeslices;
};

struct worker {
	pthread_t thread;
	pid_t tid;
	struct schedstat before, after;
	struct wl_switches switched_before, switched_after;
};

static void wait_for(sem_t *s)
{
	while (sem_wait(s))
		;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	w->tid = wl_tid();
	wl_pin((int)cpu);
	sem_post(&arrived);
	wait_for(&go);
	while (wl_now() < deadline)
		workload_spin(100000);
	sem_post(&done);
	wait_for(&leave);
	return NULL;
}

static struct schedstat schedstat_of(pid_t tid)
{
	char path[64], text[128];
	unsigned long long on_cpu, delay, slices;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	if (wl_slurp(path, text, sizeof(text)) < 0)
		wl_die(WL_CANNOT, "%s: %m", path);
	if (sscanf(text, "%llu %llu %llu", &on_cpu, &delay, &slices) != 3 || !slices)
		wl_die(WL_CANNOT, "%s: this kernel keeps no run delays", path);
	return (struct schedstat){on_cpu, delay, slices};
}

/* A task's wait is added when it gets the CPU, and it says S a little before it leaves it:
 * the sums are final once they stood still for a while. */
static void await_asleep(pid_t tid)
{
	struct schedstat last = {0};
	char path[64], text[512], *state;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	for (int i = 0; i < 2000; i++) {
		struct schedstat now = schedstat_of(tid);

		if (wl_slurp(path, text, sizeof(text)) < 0)
			wl_die(WL_FAILED, "%s: %m", path);
		state = strrchr(text, ')');
		if (state && state[2] == 'S' && !memcmp(&now, &last, sizeof(now)))
			return;
		last = now;
		wl_nap_ms(5);
	}
	wl_die(WL_FAILED, "thread %d does not come to rest", tid);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"threads", WL_NUM, &threads, "K", "busy threads"},
		{"ms", WL_NUM, &run_ms, "D", "how long they are busy"},
		{"cpu", WL_NUM, &cpu, "N", "the CPU they share (default: the last allowed)"},
		{0},
	};
	struct schedstat sum = {0};
	uint64_t voluntary = 0, nonvoluntary = 0, start, took;
	struct worker *workers;
	cpu_set_t allowed;

	wl_start(argc, argv, "runqueue", "Keeps K threads busy on one CPU for D milliseconds.",
		 opts);
	if (threads < 1 || threads > 1000 || run_ms > 60000)
		wl_die(WL_USAGE, "want 1 to 1000 threads and at most 60000 ms");
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		wl_die(WL_CANNOT, "affinity: %m");
	for (int i = 0; cpu == WL_UNSET && i < CPU_SETSIZE; i++)
		if (CPU_ISSET(CPU_SETSIZE - 1 - i, &allowed))
			cpu = (uint64_t)(CPU_SETSIZE - 1 - i);
	workers = calloc(threads, sizeof(*workers));
	sem_init(&arrived, 0, 0);
	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	sem_init(&leave, 0, 0);
	for (uint64_t i = 0; i < threads; i++)
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]))
			wl_die(WL_FAILED, "cannot make thread %llu", (unsigned long long)i);
	for (uint64_t i = 0; i < threads; i++)
		wait_for(&arrived);

	wl_ready_begin();
	wl_u64("cpu", cpu);
	wl_open("tids", '[');
	for (uint64_t i = 0; i < threads; i++)
		wl_i64(NULL, workers[i].tid);
	wl_close(']');
	wl_ready_end();

	for (uint64_t i = 0; i < threads; i++) {
		await_asleep(workers[i].tid);
		workers[i].before = schedstat_of(workers[i].tid);
		workers[i].switched_before = wl_switches_of(workers[i].tid);
	}
	start = wl_now();
	deadline = start + run_ms * 1000000;
	for (uint64_t i = 0; i < threads; i++)
		sem_post(&go);
	for (uint64_t i = 0; i < threads; i++)
		wait_for(&done);
	for (uint64_t i = 0; i < threads; i++)
		await_asleep(workers[i].tid);
	took = wl_now() - start;

	wl_line_begin();
	wl_u64("cpu", cpu);
	wl_open("threads", '[');
	for (uint64_t i = 0; i < threads; i++) {
		struct worker *w = &workers[i];
		struct wl_switches s;

		w->after = schedstat_of(w->tid);
		w->switched_after = wl_switches_of(w->tid);
		w->after.on_cpu_ns -= w->before.on_cpu_ns;
		w->after.run_delay_ns -= w->before.run_delay_ns;
		w->after.timeslices -= w->before.timeslices;
		s.voluntary = w->switched_after.voluntary - w->switched_before.voluntary;
		s.nonvoluntary = w->switched_after.nonvoluntary - w->switched_before.nonvoluntary;
		wl_open(NULL, '{');
		wl_i64("tid", w->tid);
		wl_u64("run_delay_ns", w->after.run_delay_ns);
		wl_u64("timeslices", w->after.timeslices);
		wl_u64("on_cpu_ns", w->after.on_cpu_ns);
		wl_u64("voluntary", s.voluntary);
		wl_u64("nonvoluntary", s.nonvoluntary);
		wl_close('}');
		sum.on_cpu_ns += w->after.on_cpu_ns;
		sum.run_delay_ns += w->after.run_delay_ns;
		sum.timeslices += w->after.timeslices;
		voluntary += s.voluntary;
		nonvoluntary += s.nonvoluntary;
	}
	wl_close(']');
	wl_u64("run_delay_ns", sum.run_delay_ns);
	wl_u64("timeslices", sum.timeslices);
	wl_u64("on_cpu_ns", sum.on_cpu_ns);
	wl_u64("voluntary", voluntary);
	wl_u64("nonvoluntary", nonvoluntary);
	wl_u64("took_ns", took);
	wl_finish();

	for (uint64_t i = 0; i < threads; i++)
		sem_post(&leave);
	for (uint64_t i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	return WL_OK;
}
