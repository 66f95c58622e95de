/* Busy threads share one CPU, so that they wait for it; the truth is the kernel's sum of the waits.
 */
#include "workload.h"

WL_BOUNDED("threads", threads, 4, 1, 1000, "busy threads");
WL_BOUNDED("ms", run_ms, 500, 0, 60000, "how long they are busy");
WL_NUMBER("cpu", cpu, WL_UNSET, "the CPU they share (default: the last allowed)");
WL_FLAG("widen", widen, "once they are busy, they may use all CPUs");
static sem_t done, leave;
static cpu_set_t allowed;
static volatile uint64_t deadline;

struct schedstat {
	uint64_t on_cpu_ns, run_delay_ns, timeslices;
};

struct worker {
	pthread_t thread;
	pid_t tid;
	struct schedstat stat;
	struct wl_switches switches;
};

static void *worker_main(void *arg)
{
	wl_pin((int)cpu);
	wl_arrive(&((struct worker *)arg)->tid);
	wl_wait(&wl_gate, 1);
	if (widen)
		sched_setaffinity(0, sizeof(allowed), &allowed);
	while (wl_now() < deadline)
		workload_spin(100000);
	sem_post(&done);
	wl_wait(&leave, 1);
	return NULL;
}

static struct schedstat schedstat_of(pid_t tid)
{
	struct schedstat s;
	char text[128];

	wl_of_thread(tid, "schedstat", text, sizeof(text));
	lacks_if(sscanf(text, "%lu %lu %lu", &s.on_cpu_ns, &s.run_delay_ns, &s.timeslices) != 3 ||
			 !s.timeslices,
		 "this kernel keeps no run delays");
	return s;
}

/* A task's wait is added when it gets the CPU, and its state is S slightly before it leaves the
 * CPU: the sums are final once they are stable for a while. */
static void await_asleep(pid_t tid)
{
	struct schedstat last = {0};

	for (int i = 0; i < 2000; i++) {
		struct schedstat now = schedstat_of(tid);

		if (wl_state_of(tid) == 'S' && !memcmp(&now, &last, sizeof(now)))
			return;
		last = now;
		wl_nap_ms(5);
	}
	wl_die(WL_FAILED, "thread %d does not come to rest", tid);
}

static int workload(void)
{
	struct schedstat sum = {0};
	struct wl_switches all = {0};
	struct worker *workers;

	cannot_if(sched_getaffinity(0, sizeof(allowed), &allowed), "affinity");
	for (int i = 0; cpu == WL_UNSET && i < CPU_SETSIZE; i++)
		if (CPU_ISSET(CPU_SETSIZE - 1 - i, &allowed))
			cpu = (uint64_t)(CPU_SETSIZE - 1 - i);
	workers = calloc(threads, sizeof(*workers));
	struct worker *end = workers + threads;
	for (struct worker *w = workers; w < end; w++)
		w->thread = wl_thread(worker_main, w);
	wl_wait(&wl_arrived, threads);

	wl_u64("cpu", cpu);
	wl_pids("tids", &workers->tid, threads, sizeof(*workers));
	wl_ready();

	for (struct worker *w = workers; w < end; w++) {
		await_asleep(w->tid);
		w->stat = schedstat_of(w->tid);
		w->switches = wl_switches_of(w->tid);
	}
	uint64_t start = wl_now();
	deadline = start + run_ms * 1000000;
	wl_post(&wl_gate, threads);
	wl_wait(&done, threads);
	for (struct worker *w = workers; w < end; w++)
		await_asleep(w->tid);
	uint64_t took = wl_now() - start;

	wl_open("threads", '[');
	for (struct worker *w = workers; w < end; w++) {
		struct schedstat s = schedstat_of(w->tid);

		w->switches = wl_switches_since(w->switches, w->tid);
		s.on_cpu_ns -= w->stat.on_cpu_ns;
		s.run_delay_ns -= w->stat.run_delay_ns;
		s.timeslices -= w->stat.timeslices;
		wl_object(NULL,
			  "tid %d run_delay_ns %lu timeslices %lu on_cpu_ns %lu voluntary %lu "
			  "nonvoluntary %lu",
			  w->tid, s.run_delay_ns, s.timeslices, s.on_cpu_ns, w->switches.voluntary,
			  w->switches.nonvoluntary);
		sum.on_cpu_ns += s.on_cpu_ns;
		sum.run_delay_ns += s.run_delay_ns;
		sum.timeslices += s.timeslices;
		all.voluntary += w->switches.voluntary;
		all.nonvoluntary += w->switches.nonvoluntary;
	}
	wl_close(']');
	wl_result("cpu %lu run_delay_ns %lu timeslices %lu on_cpu_ns %lu voluntary %lu "
		  "nonvoluntary %lu took_ns %lu",
		  cpu, sum.run_delay_ns, sum.timeslices, sum.on_cpu_ns, all.voluntary,
		  all.nonvoluntary, took);

	wl_post(&leave, threads);
	for (struct worker *w = workers; w < end; w++)
		pthread_join(w->thread, NULL);
	return WL_OK;
}
