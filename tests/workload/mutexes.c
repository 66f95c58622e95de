/* Takes mutexes in orders that can deadlock, or cannot, in mutexes_thread -> mutexes_both ->
 * mutexes_take. */
#include "workload.h"

enum how { LOCK, TRY, TIMED };

WL_TEXT("order", order, "cycle",
	"cycle, three, timed, condition or hang can deadlock; same, gate, try, reuse, "
	"freed, recursive or condition-free cannot");
WL_NUMBER("pairs", pairs, 0, "instead: N orders, none of which can");
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER,
		       c = PTHREAD_MUTEX_INITIALIZER, gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both_hold;
static uint64_t taken;

static bool is(const char *wanted)
{
	return !strcmp(order, wanted);
}

static struct timespec soon(uint64_t ms)
{
	return wl_timespec(wl_clock(CLOCK_REALTIME) + ms * 1000000);
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
	fail_if(mutexes_take(first, LOCK) || mutexes_take(second, how), "a mutex is not free");
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
}

/* The locks of one thread. */
struct part {
	pthread_mutex_t *first, *second;
	enum how how;
	pid_t tid;
};

WL_FRAME void *mutexes_thread(void *arg)
{
	struct part *p = arg;

	p->tid = wl_tid();
	if (is("gate"))
		mutexes_take(&gate, LOCK);
	mutexes_both(p->first, p->second, p->how);
	if (is("gate"))
		pthread_mutex_unlock(&gate);
	return NULL;
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

/* One after another. */
static void run(struct part *parts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		wl_threads(1, mutexes_thread, &parts[i], 0);
		check(!is("reuse") || i ||
			      (!pthread_mutex_destroy(&a) && !pthread_mutex_init(&a, NULL)),
		      "the mutex");
	}
}

static void two(struct part *parts)
{
	parts[0] = (struct part){&a, &b, LOCK, 0};
	parts[1] = (struct part){&b, &a, is("try") ? TRY : is("timed") ? TIMED : LOCK, 0};
	if (is("same"))
		parts[1] = parts[0];
	run(parts, 2);
}

/* Two mutexes at the same address, never destroyed, as in C++. */
static void freed(struct part *parts)
{
	volatile uintptr_t was = 0; /* hides from the compiler that it is another one */

	for (int i = 0; i < 2; i++) {
		pthread_mutex_t *mutex = malloc(200);

		*mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
		lacks_if(was && (uintptr_t)mutex != was, "the memory is not used again");
		was = (uintptr_t)mutex;
		parts[i] = (struct part){i ? &b : mutex, i ? mutex : &b, LOCK, 0};
		run(&parts[i], 1);
		free(mutex);
	}
}

static void three(struct part *parts)
{
	parts[0] = (struct part){&a, &b, LOCK, 0};
	parts[1] = (struct part){&b, &c, LOCK, 0};
	parts[2] = (struct part){&c, &a, LOCK, 0};
	run(parts, 3);
}

/* Holds the second mutex while the condition releases the first one and takes it again. */
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
	mutexes_take(&c, LOCK); /* it is still held */
	pthread_mutex_unlock(&c);
	pthread_mutex_unlock(&again);
	pthread_mutex_destroy(&again);
}

static void hang(struct part *parts)
{
	pthread_barrier_init(&both_hold, NULL, 2);
	parts[0] = (struct part){&a, &b, LOCK, 0};
	parts[1] = (struct part){&b, &a, LOCK, 0};
	for (int i = 0; i < 2; i++)
		wl_thread(mutexes_hang, &parts[i]);
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

static int workload(void)
{
	struct part parts[3] = {{0}};

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
	wl_pids("tids", &parts->tid, WL_COUNT(parts), sizeof(*parts));
	wl_result("order %s a %lu b %lu c %lu taken %lu pairs %lu", order, (uintptr_t)&a,
		  (uintptr_t)&b, (uintptr_t)&c, taken, pairs);
	_exit(WL_OK); /* some threads may hang */
}
