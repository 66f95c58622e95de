/* Makes tasks reclaim memory directly: of the whole machine, or of a memory cgroup. */
#include "memcg.h"

#include <dirent.h>

WL_FLAG("memcg", memcg, "reclaim in a memory cgroup of our own");
WL_BOUNDED("kills", kills, 0, 0, 64,
	   "in that cgroup processes one after another need more than there is");
WL_NUMBER("events", wanted, 20, "go on until the count of stalls grew by N");
WL_BOUNDED("seconds", seconds, 20, 1, 600, "give up (77) after so long");
WL_TEXT("dir", dir, NULL, "where the sparse file is made (default: one on a disk)");
static const uint64_t limit = 16 * WL_MIB, window = 8 * WL_MIB, threads = 3;

/* The counters of all zones are summed. */
static const char *const vm_keys[] = {"allocstall*",   "pgscan_direct",	 "pgsteal_direct",
				      "pgscan_kswapd", "pgsteal_kswapd", "pgscan_direct_throttle",
				      "oom_kill"};

/* Shared with the child that does the work. */
static struct {
	volatile uint64_t deadline;
	volatile uint32_t stop;
	volatile uint32_t forked, turn;
	volatile pid_t victims[64];
} * shared;

static char file_path[WL_PATH];
static uint64_t file_bytes, anon_bytes;

static bool time_is_out(void)
{
	return shared->stop || wl_now() > shared->deadline;
}

/* The holes of a sparse file fill the page cache at memory speed, without waits for a disk. */
static void *read_file(void *unused)
{
	static char buffer[1 << 17];
	int fd = open(file_path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		_exit(WL_FAILED);
	while (!time_is_out()) {
		ssize_t got = read(fd, buffer, sizeof(buffer));

		if (got < 0)
			_exit(WL_FAILED);
		if (got == 0)
			lseek(fd, 0, SEEK_SET);
	}
	close(fd);
	return unused;
}

static volatile char *map_anonymous(uint64_t size)
{
	volatile char *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		_exit(WL_FAILED);
	madvise((void *)at, size, MADV_NOHUGEPAGE);
	return at;
}

static void touch(volatile char *at, uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (uint64_t i = 0; i < bytes && !time_is_out(); i += page)
		at[i] = 1;
}

static void *touch_anonymous(void *unused)
{
	volatile char *at = map_anonymous(window);

	while (!time_is_out()) {
		touch(at, window);
		madvise((void *)at, window, MADV_DONTNEED);
	}
	return unused;
}

/* Anonymous memory without swap cannot be reclaimed: it leaves less page cache to fill. */
static void hold_anonymous(void)
{
	touch(map_anonymous(anon_bytes), anon_bytes);
}

/* Each takes twice the limit in its turn, and is the one that the kernel kills. */
static void make_victims(int gate)
{
	bool all_killed = true;
	char byte;

	anon_bytes = 2 * limit;
	for (uint32_t i = 0; i < kills; i++) {
		pid_t pid = wl_fork();

		if (pid == 0) {
			wl_write_file("/proc/self/oom_score_adj", "1000");
			while (shared->turn <= i)
				wl_nap_ms(1);
			hold_anonymous();
			_exit(WL_OK);
		}
		shared->victims[i] = pid;
		shared->forked = i + 1;
	}
	(void)!read(gate, &byte, 1);
	for (uint32_t i = 0; i < kills; i++) {
		shared->turn = i + 1;
		int status = wl_reap(shared->victims[i]);
		all_killed &= WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	}
	_exit(all_killed ? WL_OK : WL_FAILED);
}

static void child_main(int gate)
{
	pthread_t all[threads + 1];
	char byte;

	/* If memory runs out anyway, the kernel shall kill this process and no other. */
	if (!kills)
		wl_write_file("/proc/self/oom_score_adj", "1000");
	(void)!read(gate, &byte, 1);
	if (kills)
		make_victims(gate);
	if (!memcg)
		hold_anonymous();
	all[0] = wl_thread(read_file, NULL);
	for (uint64_t i = 1; !memcg && i <= threads; i++)
		all[i] = wl_thread(touch_anonymous, NULL);
	for (uint64_t i = 0; i <= (memcg ? 0 : threads); i++)
		pthread_join(all[i], NULL);
	_exit(WL_OK);
}

/* ---- memory cgroup ---- */

/* v2 counts each time that the limit made a task reclaim; v1 each charge that did not fit, which is
 * more. */
static uint64_t memcg_events(void)
{
	return cg_version == 2 ? cg_number("memory.events", "max")
			       : cg_number("memory.failcnt", NULL);
}

static void print_memcg(void)
{
	wl_open("memcg", '{');
	wl_fields("version %d path %s limit_bytes %lu", cg_version, cg_dir, limit);
	if (cg_version == 2)
		wl_fields("max_events %lu pgsteal %lu oom_kill %lu", memcg_events(),
			  cg_number("memory.stat", "pgsteal"),
			  cg_number("memory.events", "oom_kill"));
	else
		wl_fields("failcnt %lu oom_kill %lu", memcg_events(),
			  cg_number("memory.oom_control", "oom_kill"));
	wl_close('}');
}

/* ---- whole machine ---- */

/* With SCHED_IDLE kswapd cannot keep up: allocations reclaim directly. */
static void idle_kswapd(void)
{
	struct sched_param none = {0};
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	char comm[64];

	while (proc && (entry = readdir(proc))) {
		int pid = atoi(entry->d_name);

		if (pid <= 0 || wl_slurp(wl_format("/proc/%d/comm", pid), comm, sizeof(comm)) < 0 ||
		    strncmp(comm, "kswapd", 6) || getpgid(pid) != 0 ||
		    sched_getscheduler(pid) != SCHED_OTHER)
			continue;
		wl_undo(WL_UNDO_IDLE, pid, NULL, NULL);
		sched_setscheduler(pid, SCHED_IDLE, &none);
	}
	if (proc)
		closedir(proc);
}

/* If it still keeps up, a minimum above the free memory makes all tasks reclaim. */
static void boost(void)
{
	static const char path[] = "/proc/sys/vm/min_free_kbytes";
	uint64_t raised = wl_meminfo("MemFree") + 64 * WL_MIB;
	static uint64_t old;

	if (raised > wl_meminfo("MemTotal") / 4)
		return;
	if (!old) {
		old = wl_number_in(path);
		wl_undo(WL_UNDO_WRITE, 0, path, wl_format("%lu", old));
	}
	if (!old || !wl_write_file(path, wl_format("%lu", raised >> 10)))
		return;
	wl_nap_ms(100);
	wl_write_file(path, wl_format("%lu", old));
}

static int workload(void)
{
	uint64_t full = 0, stalls = 0;
	int gate[2];

	usage_if(kills && !memcg, "--kills: needs --memcg");
	lacks_if(!memcg && wl_meminfo("MemTotal") > 4 * WL_GIB,
		 "more than 4 GiB of memory to fill: --memcg or a guest");
	shared = wl_shared(4096);
	wl_pipe(gate);
	uint64_t available = wl_meminfo("MemAvailable");
	uint64_t cache = wl_meminfo("MemTotal") / 4;
	lacks_if(!memcg && available < 2 * cache, "too little memory is available");
	/* The rest is for the page cache to be reclaimed: memory never runs out. */
	anon_bytes = available - cache - threads * window;
	file_bytes = memcg ? limit * 4 : 2 * cache;
	int fd = wl_temp_file(wl_disk_dir(dir), 0, file_path);
	can(ftruncate(fd, (off_t)file_bytes), file_path);
	shared->deadline = UINT64_MAX;
	if (memcg)
		make_memcg(limit, !kills);
	pid_t child = wl_fork();
	if (child == 0) {
		close(gate[1]);
		child_main(gate[0]);
	}
	close(gate[0]);
	if (memcg)
		enter_memcg(child);
	if (kills)
		wl_tell(gate);
	while (shared->forked < kills && kill(child, 0) == 0)
		wl_nap_ms(1);

	wl_i64("worker_pid", child);
	wl_pids("victims", (const void *)shared->victims, shared->forked, sizeof(pid_t));
	wl_ready();

	struct wl_counters before = wl_count(vm_keys, WL_COUNT(vm_keys));
	uint64_t start = wl_now();
	shared->deadline = start + seconds * WL_NSEC;
	if (!memcg)
		idle_kswapd();
	wl_tell(gate);
	while (!time_is_out() && kill(child, 0) == 0) {
		siginfo_t info = {0};

		if (!waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid)
			break;
		stalls = memcg ? memcg_events() : wl_vmstat("allocstall*") - before.value[0];
		if (stalls >= wanted && !kills)
			break;
		/* kswapd gets two seconds to fall behind. */
		if (!full && wl_meminfo("MemFree") < cache / 2)
			full = wl_now();
		if (!memcg && full && wl_now() > full + 2 * WL_NSEC)
			boost();
		wl_nap_ms(10);
	}
	shared->stop = 1;
	int status = wl_reap(child);
	uint64_t took = wl_now() - start;
	struct wl_counters grown = wl_grown(&before);
	stalls = memcg ? memcg_events() : grown.value[0];
	fail_if(WIFSIGNALED(status), "the worker was killed: out of memory?");
	if (WEXITSTATUS(status))
		wl_die(WL_FAILED, "the worker failed: %d", WEXITSTATUS(status));

	wl_growth(&grown);
	if (memcg)
		print_memcg();
	/* The machine is restored before the truth is printed, not when --linger ends. */
	wl_undo_all();
	wl_result("worker_pid %d stalls %lu wanted %lu took_ns %lu", child, stalls, wanted, took);
	if (!stalls)
		wl_die(WL_CANNOT, "nothing was reclaimed in %lu s", seconds);
	return WL_OK;
}
