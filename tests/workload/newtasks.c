/* Makes processes and threads in each way, and reports each with the flags that it passed. */
#include "workload.h"

#include <sys/wait.h>

WL_BOUNDED("count", count, 3, 0, 100000, "how often each way");
WL_BOUNDED("threads", threads, 4, 0, 100000, "threads by pthread_create()");
WL_FLAG("plain", plain, "only forks and threads, no namespaces");

enum way { FORK, VFORK, NEWPID, NEWUTS, UNSHARED, SIBLING, WAYS };

static const uint64_t flags_of[WAYS] = {
	[VFORK] = CLONE_VM | CLONE_VFORK,
	[NEWPID] = CLONE_NEWPID,
	[NEWUTS] = CLONE_NEWUTS | CLONE_NEWIPC,
	[SIBLING] = CLONE_PARENT,
};

/* Shared with the children. */
static struct made {
	volatile pid_t pid, maker, parent;
	enum way way;
} * made;

static pid_t *tids;

static void *thread_main(void *tid)
{
	*(pid_t *)tid = wl_tid();
	return NULL;
}

static pid_t clone_plain(uint64_t flags)
{
	return (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
}

static void note(struct made *m, enum way way, pid_t parent, pid_t pid)
{
	fail_if(pid < 0, "clone");
	m->way = way;
	m->maker = getpid();
	m->parent = parent;
	m->pid = pid;
}

static pid_t make(enum way way)
{
	pid_t pid;

	if (way == VFORK) {
		pid = vfork();
		if (!pid)
			_exit(0);
		return pid;
	}
	pid = clone_plain(flags_of[way]);
	if (!pid)
		_exit(0);
	return pid;
}

/* A child makes it: as the first of a new pid namespace, or as its own sibling. */
static void make_by_child(struct made *m, enum way way)
{
	pid_t self = getpid(), child = clone_plain(0);

	fail_if(child < 0, "clone");
	if (!child) {
		if (way == UNSHARED)
			fail_if(unshare(CLONE_NEWPID), "unshare");
		note(m, way, way == SIBLING ? self : getpid(), make(way));
		if (way == UNSHARED)
			waitpid(m->pid, NULL, 0);
		_exit(0);
	}
	wl_reap(child);
	if (way == SIBLING)
		waitpid(m->pid, NULL, 0);
}

static int workload(void)
{
	const uint64_t ways = plain ? NEWPID : WAYS, all = ways * count;
	struct made *m;

	made = m = wl_shared((all + 1) * sizeof(*made));
	tids = calloc(threads + 1, sizeof(*tids));
	check(tids, "calloc");
	wl_ready();
	for (uint64_t i = 0; i < count; i++) {
		for (enum way way = FORK; way < ways; way++, m++) {
			if (way == UNSHARED || way == SIBLING) {
				make_by_child(m, way);
				continue;
			}
			note(m, way, getpid(), make(way));
			waitpid(m->pid, NULL, 0);
		}
	}
	for (uint64_t i = 0; i < threads; i++)
		wl_threads(1, thread_main, &tids[i], 0);

	wl_pids("tids", tids, threads, sizeof(*tids));
	wl_open("made", '[');
	for (m = made; m < made + all; m++)
		wl_object(NULL, "pid %d maker %d parent %d flags %lu new_pid %d new_uts %d", m->pid,
			  m->maker, m->parent, flags_of[m->way],
			  m->way == NEWPID || m->way == UNSHARED, m->way == NEWUTS);
	wl_close(']');
	/* Two children of each round make one of these each. */
	return wl_result("processes %lu threads %lu tasks %lu", all + (plain ? 0 : 2 * count),
			 threads, all + (plain ? 0 : 2 * count) + threads);
}
