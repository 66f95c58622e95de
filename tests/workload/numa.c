/* Has NUMA balancing, or move_pages(), move a known number of pages to another node; or moves there
 * itself. */
#include "workload.h"
#include <linux/mempolicy.h>

static uint64_t pages = 512, seconds = 40, rounds = 1, travel;
static bool by_call, huge;
static uint64_t page;

static const char *const vm_keys[] = {"numa_pages_migrated", "pgmigrate_success", "pgmigrate_fail",
				      "numa_hint_faults", "thp_migration_success"};

/* Two nodes that have memory, and a processor of each; -1: the first has none. */
static int nodes[2], cpus[2];

static bool online(const char *path, int number, int *first)
{
	char text[256];

	if (wl_slurp(path, text, sizeof(text)) < 0)
		return false;
	for (char *at = text; *at >= '0' && *at <= '9';) {
		long from = strtol(at, &at, 10), to = from;

		if (*at == '-')
			to = strtol(at + 1, &at, 10);
		if (*first < 0)
			*first = (int)from;
		if (from <= number && number <= to)
			return true;
		if (*at == ',')
			at++;
	}
	return false;
}

static void find_nodes(void)
{
	int found = 0, first;
	char path[128];

	for (int node = 0; node < 64 && found < 2; node++) {
		first = -1;
		if (!online("/sys/devices/system/node/has_memory", node, &first))
			continue;
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
		first = -1;
		online(path, -1, &first);
		if (found == 1 && first < 0)
			continue;
		cpus[found] = first;
		nodes[found++] = node;
	}
	if (found < 2)
		wl_die(WL_CANNOT, "this machine has one NUMA node");
}

static void tune(const char *name, const char *value)
{
	char path[128], before[64];

	snprintf(path, sizeof(path), "/proc/sys/kernel/numa_balancing%s%s", *name ? "_" : "", name);
	if (access(path, W_OK)) /* 5.13 moved all but the switch */
		snprintf(path, sizeof(path), "/sys/kernel/debug/sched/numa_balancing/%s", name);
	if (wl_slurp(path, before, sizeof(before)) < 0)
		wl_die(WL_CANNOT, "%s: %m", path);
	wl_undo(WL_UNDO_WRITE, 0, path, before);
	if (!wl_write_file(path, value))
		wl_die(WL_CANNOT, "%s: %m", path);
}

/* How many of the pages lie on the node; with a target they are moved there first. */
static uint64_t pages_on(char *at, int node, const int *target)
{
	static void *addresses[1 << 16];
	static int wanted[1 << 16], where[1 << 16];
	uint64_t n = 0;

	for (uint64_t i = 0; i < pages; i++) {
		addresses[i] = at + i * page;
		wanted[i] = target ? *target : 0;
	}
	if (syscall(SYS_move_pages, 0, pages, addresses, target ? wanted : NULL, where,
		    target ? MPOL_MF_MOVE : 0) < 0)
		wl_die(WL_FAILED, "move_pages: %m");
	for (uint64_t i = 0; i < pages; i++)
		n += where[i] == node;
	return n;
}

/* The task alone, from the one node to the other; its memory stays. */
static int travel_alone(void)
{
	if (cpus[0] < 0)
		wl_die(WL_CANNOT, "node %d has no processor", nodes[0]);
	wl_pin(cpus[0]);
	wl_ready();
	for (uint64_t i = 1; i <= travel; i++)
		wl_pin(cpus[i % 2]);
	wl_line_begin();
	wl_u64("moves", travel);
	for (int i = 0; i < 2; i++) {
		wl_u64(i ? "other_node" : "node", (uint64_t)nodes[i]);
		wl_u64(i ? "other_cpu" : "cpu", (uint64_t)cpus[i]);
	}
	wl_finish();
	return WL_OK;
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"pages", WL_NUM, &pages, "N", "how many pages"},
		{"rounds", WL_NUM, &rounds, "M", "how often they are moved, with --call"},
		{"seconds", WL_NUM, &seconds, "S", "longest wait for NUMA balancing"},
		{"call", WL_FLAG, &by_call, NULL, "by move_pages(), not by NUMA balancing"},
		{"huge", WL_FLAG, &huge, NULL, "transparent huge pages"},
		{"travel", WL_NUM, &travel, "N", "the task itself moves N times, and no page"},
		{0},
	};
	const uint64_t two_mib = 2 * WL_MIB;
	struct wl_counters before, after;
	unsigned long mask;
	uint64_t size, arrived = 0, deadline, moved = 0, took;
	char *at;

	wl_start(argc, argv, "numa", "Has a known number of pages moved to another NUMA node.",
		 opts);
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	if (!pages || pages > 1 << 16 || rounds < 1 || rounds > 1000)
		wl_die(WL_USAGE, "want 1 to 65536 pages, 1 to 1000 rounds");
	find_nodes();
	if (travel)
		return travel_alone();
	/* Nothing of the tests' own shall move, before or beside what is counted. */
	tune("", "0");
	size = (pages * page + two_mib - 1) / two_mib * two_mib;
	at = mmap(NULL, size + two_mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		wl_die(WL_FAILED, "mmap: %m");
	at += -(uintptr_t)at & (two_mib - 1);
	if (madvise(at, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
		wl_die(WL_CANNOT, "madvise: %m");
	mask = 1UL << nodes[0];
	if (syscall(SYS_mbind, at, size, MPOL_BIND, &mask, 64, 0))
		wl_die(WL_CANNOT, "mbind: %m");
	for (uint64_t i = 0; i < pages; i++)
		at[i * page] = 1;
	if (huge) {
		char smaps[1 << 16];
		uint64_t kib;

		/* The largest alone is ours: the C library has none. */
		wl_slurp("/proc/self/smaps_rollup", smaps, sizeof(smaps));
		if (!wl_lookup(smaps, "AnonHugePages", &kib) || kib << 10 < size)
			wl_die(WL_CANNOT, "no huge page is available");
	}
	if (syscall(SYS_mbind, at, size, MPOL_DEFAULT, NULL, 0, 0))
		wl_die(WL_FAILED, "mbind: %m");
	if (pages_on(at, nodes[0], NULL) != pages)
		wl_die(WL_FAILED, "the pages are not on node %d", nodes[0]);
	wl_pin(cpus[1]);
	wl_ready();

	if (!by_call) {
		tune("scan_delay_ms", "10");
		tune("scan_period_min_ms", "10");
		tune("scan_period_max_ms", "20");
	}
	wl_count(&before, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));
	took = wl_now();
	if (by_call) {
		for (uint64_t i = 0; i < rounds; i++) {
			arrived = pages_on(at, nodes[(i + 1) % 2], &nodes[(i + 1) % 2]);
			moved += arrived;
		}
	} else {
		tune("", "1");
		deadline = wl_now() + seconds * WL_NSEC;
		while (arrived < pages && wl_now() < deadline) {
			uint64_t end = wl_now() + WL_NSEC / 10;

			/* Processor time is what makes the kernel look at a task's pages. */
			while (wl_now() < end)
				for (uint64_t i = 0; i < pages; i++)
					((volatile char *)at)[i * page]++;
			arrived = pages_on(at, nodes[1], NULL);
		}
		wl_write_file("/proc/sys/kernel/numa_balancing", "0");
		moved = arrived;
	}
	took = wl_now() - took;
	wl_count(&after, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));
	wl_line_begin();
	wl_u64("pages", pages);
	wl_u64("moved", moved);
	wl_u64("took_ns", took);
	wl_growth("vmstat", &before, &after);
	wl_finish();
	return WL_OK;
}
