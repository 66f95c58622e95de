/* Makes tasks reclaim memory themselves: of the whole machine, or of a memory cgroup. */
#include "memcg.h"

#include <dirent.h>

static const char *dir;
static uint64_t threads = 3, wanted = 20, seconds = 20, limit = 16 * WL_MIB, kills;
static bool memcg, force;

/* An event of the small zone is as good as one of the big. */
static const char *const vm_keys[] = {"allocstall*",   "pgscan_direct",	 "pgsteal_direct",
				      "pgscan_kswapd", "pgsteal_kswapd", "pgscan_direct_throttle",
				      "oom_kill"};

/* Shared with the child that does the work. */
static struct {
	volatile uint64_t deadline;
	volatile uint64_t read_bytes, touched_bytes;
	volatile uint32_t stop, boosts;
	volatile uint32_t forked, turn;
	volatile pid_t victims[64];
} * shared;

static char file_path[WL_PATH];
static uint64_t file_bytes, anon_bytes, window = 8 * WL_MIB;

static bool time_is_out(void)
{
	return shared->stop || wl_now() > shared->deadline;
}

static uint64_t vmstat(const char *key)
{
	struct wl_counters c;

	wl_count(&c, "/proc/vmstat", &key, 1);
	return c.value[0];
}

/* The holes of a sparse file fill the page cache as fast as memory is, without a disk's wait. */
static void *read_file(void *unused)
{
	static char buffer[1 << 17];
	int fd = open(file_path, O_RDONLY | O_CLOEXEC);

	(void)unused;
	if (fd < 0)
		_exit(WL_FAILED);
	while (!time_is_out()) {
		ssize_t got = read(fd, buffer, sizeof(buffer));

		if (got < 0)
			_exit(WL_FAILED);
		if (got == 0)
			lseek(fd, 0, SEEK_SET);
		shared->read_bytes += (uint64_t)got;
	}
	close(fd);
	return NULL;
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

static void *touch_anonymous(void *unused)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	volatile char *at = map_anonymous(window);

	(void)unused;
	while (!time_is_out()) {
		for (uint64_t i = 0; i < window && !time_is_out(); i += page) {
			at[i] = 1;
			shared->touched_bytes += page;
		}
		madvise((void *)at, window, MADV_DONTNEED);
	}
	return NULL;
}

/* Anonymous memory without swap cannot be reclaimed: it leaves less page cache to fill. */
static void hold_anonymous(void)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	volatile char *at = map_anonymous(anon_bytes);

	for (uint64_t i = 0; i < anon_bytes && !time_is_out(); i += page)
		at[i] = 1;
}

static void start_thread(pthread_t *thread, void *(*run)(void *))
{
	if (pthread_create(thread, NULL, run, NULL))
		_exit(WL_FAILED);
}

/* Each needs twice the limit when its turn comes, and is the one that the kernel takes. */
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
		int status;

		shared->turn = i + 1;
		status = wl_reap(shared->victims[i]);
		all_killed &= WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	}
	_exit(all_killed ? WL_OK : WL_FAILED);
}

static void child_main(int gate)
{
	pthread_t all[65];
	size_t n = 0;
	char byte;

	/* If memory runs out after all, the kernel shall take this process and no other. */
	if (!kills)
		wl_write_file("/proc/self/oom_score_adj", "1000");
	(void)!read(gate, &byte, 1);
	if (kills)
		make_victims(gate);
	if (!memcg)
		hold_anonymous();
	start_thread(&all[n++], read_file);
	for (uint64_t i = 0; !memcg && i < threads; i++)
		start_thread(&all[n++], touch_anonymous);
	while (n)
		pthread_join(all[--n], NULL);
	_exit(WL_OK);
}

/* ---- memory cgroup ---- */

/* v2 counts each time the limit made a task reclaim; v1 each charge that did not fit, which is
 * more. */
static uint64_t memcg_events(void)
{
	return cg_version == 2 ? cg_number("memory.events", "max")
			       : cg_number("memory.failcnt", NULL);
}

static void print_memcg(void)
{
	wl_open("memcg", '{');
	wl_i64("version", cg_version);
	wl_str("path", cg_dir);
	wl_u64("limit_bytes", limit);
	if (cg_version == 2) {
		wl_u64("max_events", memcg_events());
		wl_u64("pgscan", cg_number("memory.stat", "pgscan"));
		wl_u64("pgsteal", cg_number("memory.stat", "pgsteal"));
		wl_u64("oom_kill", cg_number("memory.events", "oom_kill"));
	} else {
		uint64_t in = cg_number("memory.stat", "pgpgin");
		uint64_t out = cg_number("memory.stat", "pgpgout");

		wl_u64("failcnt", memcg_events());
		wl_u64("pgpgin", in);
		wl_u64("pgpgout", out);
		wl_u64("oom_kill", cg_number("memory.oom_control", "oom_kill"));
	}
	wl_close('}');
}

/* ---- whole machine ---- */

/* A kswapd that runs only when no task does cannot keep up: allocations reclaim themselves. */
static unsigned int idle_kswapd(void)
{
	struct sched_param none = {0};
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	unsigned int found = 0;

	while (proc && (entry = readdir(proc))) {
		char path[300], comm[64];
		int pid = atoi(entry->d_name);

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (pid <= 0 || wl_slurp(path, comm, sizeof(comm)) < 0 ||
		    strncmp(comm, "kswapd", 6) || getpgid(pid) != 0 ||
		    sched_getscheduler(pid) != SCHED_OTHER)
			continue;
		wl_undo(WL_UNDO_IDLE, pid, NULL, NULL);
		if (!sched_setscheduler(pid, SCHED_IDLE, &none))
			found++;
	}
	if (proc)
		closedir(proc);
	return found;
}

/* When even so it keeps up, a minimum above what is free makes all reclaim at once. */
static void boost(void)
{
	static const char path[] = "/proc/sys/vm/min_free_kbytes";
	uint64_t raised = wl_meminfo("MemFree") + 64 * WL_MIB, most = wl_meminfo("MemTotal") / 4;
	static char old[32];
	char text[32];

	if (raised > most)
		return;
	if (!shared->boosts) {
		if (wl_slurp(path, old, sizeof(old)) < 0)
			return;
		wl_undo(WL_UNDO_WRITE, 0, path, old);
	}
	snprintf(text, sizeof(text), "%llu", (unsigned long long)(raised >> 10));
	if (!wl_write_file(path, text))
		return;
	shared->boosts++;
	wl_nap_ms(100);
	wl_write_file(path, old);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"memcg", WL_FLAG, &memcg, NULL, "reclaim in a memory cgroup of our own"},
		{"limit", WL_NUM, &limit, "BYTES", "of that cgroup"},
		{"kills", WL_NUM, &kills, "N",
		 "in that cgroup N processes one after another need more than there is"},
		{"events", WL_NUM, &wanted, "N", "go on until the count of stalls grew by N"},
		{"seconds", WL_NUM, &seconds, "S", "give up (77) after so long"},
		{"threads", WL_NUM, &threads, "K", "threads that allocate (not --memcg)"},
		{"dir", WL_STR, &dir, "D",
		 "where the sparse file is made (default: one on a disk)"},
		{"force", WL_FLAG, &force, NULL,
		 "whole-machine reclaim even above 4 GiB of memory"},
		{0},
	};
	struct wl_counters before, after;
	uint64_t start, took, grown = 0, available, cache, full = 0;
	int fd, gate[2], status;
	unsigned int idle = 0;
	bool killed;
	pid_t child;

	wl_start(argc, argv, "reclaim", "Makes tasks stall in direct reclaim or memcg reclaim.",
		 opts);
	if (threads < 1 || threads > 64 || seconds < 1 || seconds > 600 || limit < 4 * WL_MIB)
		wl_die(WL_USAGE, "want 1 to 64 threads, 1 to 600 seconds, a limit of 4m or more");
	if (kills && (!memcg || kills > WL_COUNT(shared->victims)))
		wl_die(WL_USAGE, "--kills: needs --memcg, and at most 64");
	if (!memcg && wl_meminfo("MemTotal") > 4 * WL_GIB && !force)
		wl_die(WL_CANNOT, "more than 4 GiB of memory to fill: --memcg, a guest or --force");
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || pipe2(gate, O_CLOEXEC))
		wl_die(WL_FAILED, "%m");
	available = wl_meminfo("MemAvailable");
	cache = wl_meminfo("MemTotal") / 4;
	if (!memcg && available < 2 * cache)
		wl_die(WL_CANNOT, "too little memory is available");
	/* What stays is for the page cache that is to be reclaimed, so that memory never runs out.
	 */
	anon_bytes = available - cache - threads * window;
	file_bytes = memcg ? limit * 4 : 2 * cache;
	fd = wl_temp_file(wl_disk_dir(dir), 0, file_path, sizeof(file_path));
	if (ftruncate(fd, (off_t)file_bytes))
		wl_die(WL_CANNOT, "%s: %m", file_path);
	shared->deadline = UINT64_MAX;
	if (memcg)
		make_memcg(limit, !kills);
	child = wl_fork();
	if (child == 0) {
		close(gate[1]);
		child_main(gate[0]);
	}
	close(gate[0]);
	if (memcg)
		enter_memcg(child);
	if (kills)
		(void)!write(gate[1], "x", 1);
	while (shared->forked < kills && kill(child, 0) == 0)
		wl_nap_ms(1);

	wl_ready_begin();
	wl_i64("worker_pid", child);
	wl_open("victims", '[');
	for (uint32_t i = 0; i < shared->forked; i++)
		wl_i64(NULL, shared->victims[i]);
	wl_close(']');
	wl_ready_end();

	wl_count(&before, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));
	start = wl_now();
	shared->deadline = start + seconds * WL_NSEC;
	if (!memcg)
		idle = idle_kswapd();
	(void)!write(gate[1], "x", 1);
	while (!time_is_out() && kill(child, 0) == 0) {
		siginfo_t info = {0};

		if (!waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid)
			break;
		grown = memcg ? memcg_events() : vmstat("allocstall*") - before.value[0];
		if (grown >= wanted && !kills)
			break;
		/* kswapd is given two seconds to fall behind by itself. */
		if (!full && wl_meminfo("MemFree") < cache / 2)
			full = wl_now();
		if (!memcg && full && wl_now() > full + 2 * WL_NSEC)
			boost();
		wl_nap_ms(10);
	}
	shared->stop = 1;
	status = wl_reap(child);
	took = wl_now() - start;
	wl_count(&after, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));
	grown = memcg ? memcg_events() : after.value[0] - before.value[0];
	killed = WIFSIGNALED(status);
	if (!killed && WEXITSTATUS(status))
		wl_die(WL_FAILED, "the worker failed: %d", WEXITSTATUS(status));

	wl_line_begin();
	wl_i64("worker_pid", child);
	wl_str("mode", memcg ? "memcg" : "global");
	wl_u64("stalls", grown);
	wl_u64("wanted", wanted);
	wl_u64("idled_kswapds", idle);
	wl_u64("boosts", shared->boosts);
	wl_bool("worker_killed", killed);
	wl_u64("read_bytes", shared->read_bytes);
	wl_u64("touched_bytes", shared->touched_bytes);
	wl_u64("took_ns", took);
	wl_growth("vmstat", &before, &after);
	if (memcg)
		print_memcg();
	/* The machine is as before when the truth is out, not when --linger ends. */
	wl_undo_all();
	wl_finish();
	if (killed)
		wl_die(WL_FAILED, "the worker was killed: out of memory?");
	if (!grown)
		wl_die(WL_CANNOT, "nothing was reclaimed in %llu s", (unsigned long long)seconds);
	return WL_OK;
}
