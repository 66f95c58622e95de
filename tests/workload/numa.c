/* Lets NUMA balancing, or move_pages(), move a known number of pages to another node; or moves
 * itself there. */
#include "workload.h"
#include <linux/mempolicy.h>

WL_BOUNDED("pages", pages, 512, 1, 65536, "how many pages");
WL_BOUNDED("rounds", rounds, 1, 1, 1000, "how often they are moved, with --call");
WL_NUMBER("seconds", seconds, 40, "longest wait for NUMA balancing");
WL_FLAG("call", by_call, "by move_pages(), not by NUMA balancing");
WL_FLAG("huge", huge, "transparent huge pages");
WL_NUMBER("travel", travel, 0, "the task itself moves N times, and no page");
static uint64_t page;

static const char *const vm_keys[] = {"numa_pages_migrated", "pgmigrate_success"};

/* Two nodes that have memory, and a CPU of each; -1: the first has none. */
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

	for (int node = 0; node < 64 && found < 2; node++) {
		first = -1;
		if (!online("/sys/devices/system/node/has_memory", node, &first))
			continue;
		first = -1;
		online(wl_format("/sys/devices/system/node/node%d/cpulist", node), -1, &first);
		if (found == 1 && first < 0)
			continue;
		cpus[found] = first;
		nodes[found++] = node;
	}
	lacks_if(found < 2, "this machine has one NUMA node");
}

static void tune(const char *name, const char *value)
{
	const char *path = wl_format("/proc/sys/kernel/numa_balancing%s%s", *name ? "_" : "", name);

	if (access(path, W_OK)) /* 5.13 moved all but the switch */
		path = wl_format("/sys/kernel/debug/sched/numa_balancing/%s", name);
	cannot_if(!wl_tune(path, value), path);
}

/* Number of pages on the node; with a target they are moved there first. */
static uint64_t pages_on(char *at, int node, const int *target)
{
	static void *addresses[1 << 16];
	static int wanted[1 << 16], where[1 << 16];
	uint64_t n = 0;

	for (uint64_t i = 0; i < pages; i++) {
		addresses[i] = at + i * page;
		wanted[i] = target ? *target : 0;
	}
	fail_if(syscall(SYS_move_pages, 0, pages, addresses, target ? wanted : NULL, where,
			target ? MPOL_MF_MOVE : 0) < 0,
		"move_pages");
	for (uint64_t i = 0; i < pages; i++)
		n += where[i] == node;
	return n;
}

/* Only the task moves from one node to the other; its memory stays. */
static int travel_alone(void)
{
	lacks_if(cpus[0] < 0, "the first node has no processor");
	wl_pin(cpus[0]);
	wl_ready();
	for (uint64_t i = 1; i <= travel; i++)
		wl_pin(cpus[i % 2]);
	return wl_result("moves %lu node %d cpu %d other_node %d other_cpu %d", travel, nodes[0],
			 cpus[0], nodes[1], cpus[1]);
}

static int workload(void)
{
	const uint64_t two_mib = 2 * WL_MIB;
	struct wl_counters before;
	uint64_t arrived = 0, deadline, moved = 0;

	page = (uint64_t)sysconf(_SC_PAGESIZE);
	find_nodes();
	if (travel)
		return travel_alone();
	/* Pages of the tests themselves must not move, before or during the count. */
	tune("", "0");
	uint64_t size = (pages * page + two_mib - 1) / two_mib * two_mib;
	char *at = wl_anonymous(size + two_mib);
	at += -(uintptr_t)at & (two_mib - 1);
	cannot_if(madvise(at, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE), "madvise");
	unsigned long mask = 1UL << nodes[0];
	cannot_if(syscall(SYS_mbind, at, size, MPOL_BIND, &mask, 64, 0), "mbind");
	for (uint64_t i = 0; i < pages; i++)
		at[i * page] = 1;
	if (huge) {
		char smaps[1 << 16];
		uint64_t kib;

		/* All huge pages are ours: the C library has none. */
		wl_slurp("/proc/self/smaps_rollup", smaps, sizeof(smaps));
		lacks_if(!wl_lookup(smaps, "AnonHugePages", &kib) || kib << 10 < size,
			 "no huge page is available");
	}
	fail_if(syscall(SYS_mbind, at, size, MPOL_DEFAULT, NULL, 0, 0), "mbind");
	check(pages_on(at, nodes[0], NULL) == pages, "pages on the first node");
	wl_pin(cpus[1]);
	wl_ready();

	if (!by_call) {
		tune("scan_delay_ms", "10");
		tune("scan_period_min_ms", "10");
		tune("scan_period_max_ms", "20");
	}
	before = wl_count(vm_keys, WL_COUNT(vm_keys));
	uint64_t took = wl_now();
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

			/* CPU time makes the kernel scan a task's pages. */
			while (wl_now() < end)
				for (uint64_t i = 0; i < pages; i++)
					((volatile char *)at)[i * page]++;
			arrived = pages_on(at, nodes[1], NULL);
		}
		wl_write_file("/proc/sys/kernel/numa_balancing", "0");
		moved = arrived;
	}
	took = wl_now() - took;
	before = wl_grown(&before);
	wl_growth(&before);
	return wl_result("pages %lu moved %lu took_ns %lu", pages, moved, took);
}
