/*
 * Takes mutexes in orders that can deadlock, or cannot, in mutexes_thread -> mutexes_both ->
 * mutexes_take.
 */
#include "workload.h"

enum how { LOCK, TRY, TIMED };

static const char *order = "cycle";
static uint64_t pairs;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER,
		       c = PTHREAD_MUTEX_INITIALIZER, gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both_hold;
static uint64_t taken;

static struct timespec soon(uint64_t ms)
{
	uint64_t at = wl_clock(CLOCK_REALTIME) + ms * 1000000;
	struct timespec t = {.tv_sec = (time_t)(at / WL_NSEC), .tv_nsec = (long)(at % WL_NSEC)};

	return t;
}

WL_FRAME int mutexes_take(pthread_mutex_t *mutex, enum how how)
{
	struct timespec limit = soon(10000);
	int ret;

	WL_KEEP_FRAME();
	if (how == TRY)
		ret = pthread_mutex_trylock(mutex);
	else if (how == TIMED)
		ret = pthread_mutex_timedlock(mutex, &limit);
	else
		ret = pthread_mutex_lock(mutex);
	taken++;
	return ret;
}

WL_FRAME void mutexes_both(pthread_mutex_t *first, pthread_mutex_t *second, enum how how)
{
	if (mutexes_take(first, LOCK) || mutexes_take(second, how))
		wl_die(WL_FAILED, "a mutex is not free");
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
}

/* What one thread does. */
struct part {
	pthread_mutex_t *first, *second;
	enum how how;
	bool gated;
	pid_t tid;
};

WL_FRAME void *mutexes_thread(void *arg)
{
	struct part *p = arg;

	p->tid = wl_tid();
	if (p->gated)
		mutexes_take(&gate, LOCK);
	mutexes_both(p->first, p->second, p->how);
	if (p->gated)
		pthread_mutex_unlock(&gate);
	return NULL;
}

static void run(struct part *p)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, mutexes_thread, p))
		wl_die(WL_FAILED, "cannot make a thread");
	pthread_join(thread, NULL);
}

WL_FRAME void *mutexes_hang(void *arg)
{
	struct part *p = arg;

	p->tid = wl_tid();
	mutexes_take(p->first, LOCK);
	pthread_barrier_wait(&both_hold);
	mutexes_take(p->second, LOCK);
	return NULL;
}

static bool is(const char *wanted)
{
	return !strcmp(order, wanted);
}

static void two(struct part *parts)
{
	parts[0] = (struct part){&a, &b, LOCK, is("gate"), 0};
	parts[1] = (struct part){&b, &a, LOCK, is("gate"), 0};
	if (is("same"))
		parts[1] = parts[0];
	if (is("try"))
		parts[1].how = TRY;
	if (is("timed"))
		parts[1].how = TIMED;
	run(&parts[0]);
	if (is("reuse") && (pthread_mutex_destroy(&a) || pthread_mutex_init(&a, NULL)))
		wl_die(WL_FAILED, "the mutex is not free");
	run(&parts[1]);
}

/* The second mutex of the same address is never destroyed, as in C++. */
static void freed(struct part *parts)
{
	volatile uintptr_t was = 0; /* or the compiler knows that it is another one */

	for (int i = 0; i < 2; i++) {
		pthread_mutex_t *mutex = malloc(200);

		*mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
		if (was && (uintptr_t)mutex != was)
			wl_die(WL_CANNOT, "the memory is not used again");
		was = (uintptr_t)mutex;
		parts[i] = (struct part){i ? &b : mutex, i ? mutex : &b, LOCK, false, 0};
		run(&parts[i]);
		free(mutex);
	}
}

static void three(struct part *parts)
{
	parts[0] = (struct part){&a, &b, LOCK, false, 0};
	parts[1] = (struct part){&b, &c, LOCK, false, 0};
	parts[2] = (struct part){&c, &a, LOCK, false, 0};
	for (int i = 0; i < 3; i++)
		run(&parts[i]);
}

/* Holds the second mutex while the condition gives the first one back and takes it again. */
static void wait_for_condition(void)
{
	struct timespec limit = soon(20);

	mutexes_take(&a, LOCK);
	mutexes_take(&b, LOCK);
	if (is("condition-free"))
		pthread_mutex_unlock(&b);
	pthread_cond_timedwait(&condition, &a, &limit);
	pthread_mutex_unlock(&a);
	if (is("condition-free")) {
		mutexes_take(&b, LOCK);
		mutexes_take(&c, LOCK);
		pthread_mutex_unlock(&c);
	}
	pthread_mutex_unlock(&b);
}

static void recurse(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t again;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&again, &attr);
	mutexes_take(&again, LOCK);
	mutexes_take(&b, LOCK);
	mutexes_take(&again, LOCK);
	pthread_mutex_unlock(&again);
	pthread_mutex_unlock(&b);
	mutexes_take(&c, LOCK); /* it is held still */
	pthread_mutex_unlock(&c);
	pthread_mutex_unlock(&again);
	pthread_mutex_destroy(&again);
}

static void hang(struct part *parts)
{
	pthread_t threads[2];

	pthread_barrier_init(&both_hold, NULL, 2);
	parts[0] = (struct part){&a, &b, LOCK, false, 0};
	parts[1] = (struct part){&b, &a, LOCK, false, 0};
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, mutexes_hang, &parts[i]))
			wl_die(WL_FAILED, "cannot make a thread");
	wl_nap_ms(300);
}

static void take_pairs(void)
{
	pthread_mutex_t *all = calloc(pairs + 1, sizeof(*all));

	mutexes_take(&all[0], LOCK);
	for (uint64_t i = 1; i <= pairs; i++) {
		mutexes_take(&all[i], LOCK);
		pthread_mutex_unlock(&all[i]);
	}
	pthread_mutex_unlock(&all[0]);
	free(all);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"order", WL_STR, &order, "WHAT",
		 "cycle, three, timed, condition or hang can deadlock; same, gate, try, reuse, "
		 "freed, recursive or condition-free cannot"},
		{"pairs", WL_NUM, &pairs, "N", "instead: N orders, none of which can"},
		{0},
	};
	struct part parts[3] = {{0}};

	wl_start(argc, argv, "mutexes", "Takes mutexes in known orders.", opts);
	wl_ready();
	if (pairs)
		take_pairs();
	else if (is("three"))
		three(parts);
	else if (is("condition") || is("condition-free"))
		wait_for_condition();
	else if (is("recursive"))
		recurse();
	else if (is("hang"))
		hang(parts);
	else if (is("freed"))
		freed(parts);
	else
		two(parts);
	wl_line_begin();
	wl_str("order", order);
	wl_u64("a", (uint64_t)(uintptr_t)&a);
	wl_u64("b", (uint64_t)(uintptr_t)&b);
	wl_u64("c", (uint64_t)(uintptr_t)&c);
	wl_open("tids", '[');
	for (size_t i = 0; i < WL_COUNT(parts); i++)
		wl_i64(NULL, parts[i].tid);
	wl_close(']');
	wl_u64("taken", taken);
	wl_u64("pairs", pairs);
	wl_finish();
	fflush(stdout);
	_exit(WL_OK); /* some threads may hang */
}
