/* Tasks that the load average counts: threads that spin, and threads in vfork(), which wait for
 * their children and cannot be interrupted. */
#include "workload.h"

static uint64_t spinning = 2, blocked = 3, run_ms;
static sem_t arrived;
static volatile bool stop;

struct worker {
	pthread_t thread;
	volatile pid_t tid;
};

static void *spin_main(void *arg)
{
	struct worker *w = arg;

	w->tid = wl_tid();
	sem_post(&arrived);
	while (!stop)
		workload_spin(100000);
	return NULL;
}

/* The child shares the parent's memory until it ends. */
static void *block_main(void *arg)
{
	struct worker *w = arg;
	pid_t child;

	w->tid = wl_tid();
	sem_post(&arrived);
	child = vfork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!stop)
			wl_nap_ms(10);
		_exit(0);
	}
	if (child < 0)
		wl_die(WL_FAILED, "vfork: %m");
	waitpid(child, NULL, 0);
	return NULL;
}

static void await_state(pid_t tid, char wanted)
{
	char path[64], text[512], *state;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	for (int i = 0; i < 2000; i++) {
		if (wl_slurp(path, text, sizeof(text)) < 0)
			wl_die(WL_FAILED, "%s: %m", path);
		state = strrchr(text, ')');
		if (state && state[2] == wanted)
			return;
		wl_nap_ms(5);
	}
	wl_die(WL_FAILED, "thread %d does not come to state %c", tid, wanted);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"spinning", WL_NUM, &spinning, "K", "threads that spin"},
		{"blocked", WL_NUM, &blocked, "N", "threads in vfork()"},
		{"ms", WL_NUM, &run_ms, "T", "go on so long after the start"},
		{0},
	};
	struct worker *workers;
	uint64_t all;

	wl_start(argc, argv, "load", "Keeps K threads runnable and N uninterruptible.", opts);
	all = spinning + blocked;
	if (all < 1 || all > 100 || run_ms > 60000)
		wl_die(WL_USAGE, "want 1 to 100 threads and at most 60000 ms");
	workers = calloc(all, sizeof(*workers));
	sem_init(&arrived, 0, 0);
	for (uint64_t i = 0; i < all; i++)
		if (pthread_create(&workers[i].thread, NULL, i < spinning ? spin_main : block_main,
				   &workers[i]))
			wl_die(WL_FAILED, "cannot make thread %llu", (unsigned long long)i);
	for (uint64_t i = 0; i < all; i++)
		while (sem_wait(&arrived))
			;
	for (uint64_t i = 0; i < all; i++)
		await_state(workers[i].tid, i < spinning ? 'R' : 'D');

	wl_ready_begin();
	wl_open("spinning", '[');
	for (uint64_t i = 0; i < spinning; i++)
		wl_i64(NULL, workers[i].tid);
	wl_close(']');
	wl_open("blocked", '[');
	for (uint64_t i = spinning; i < all; i++)
		wl_i64(NULL, workers[i].tid);
	wl_close(']');
	wl_ready_end();

	wl_nap_ms((unsigned int)run_ms);
	stop = true;
	for (uint64_t i = 0; i < all; i++)
		pthread_join(workers[i].thread, NULL);
	wl_line_begin();
	wl_u64("spinning", spinning);
	wl_u64("blocked", blocked);
	wl_finish();
	return WL_OK;
}
