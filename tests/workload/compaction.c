/* Causes direct compaction (huge pages in fragmented memory), manual compaction, or page
 * allocations that fall back to another migrate type. */
#include "workload.h"

#include <linux/if_packet.h>
#include <sys/file.h>
#include <sys/socket.h>

WL_FLAG("manual", manual, "write 1 to vm.compact_memory instead");
WL_BOUNDED("rounds", rounds, 1, 1, 1000, "this many times (--manual)");
WL_NUMBER("events", wanted, 4, "go on until compact_stall grew this much");
WL_BOUNDED("seconds", seconds, 20, 1, 600, "bound for fragmenting, and for compacting");
WL_BOUNDED("unmovable", unmovable, 0, 0, 4096,
	   "take so many MiB of unmovable memory, and what is free");
WL_BOUNDED("order", order, 0, 0, 10, "2^N pages at a time (--unmovable)");
WL_FLAG("whole", whole, "do not fragment memory first (--unmovable)");

static const char *const vm_keys[] = {"compact_stall", "compact_success", "compact_migrate_scanned",
				      "compact_free_scanned"};

static const char compact_path[] = "/proc/sys/vm/compact_memory";
static const char huge_path[] = "/proc/sys/vm/nr_hugepages";

static struct {
	volatile uint32_t fragmented;
	volatile uint64_t freed_bytes;
} * shared;

/* One compaction run starts for each zone that has pages. */
static uint64_t print_zones(void)
{
	FILE *info = fopen("/proc/zoneinfo", "re");
	char line[512], zone[32] = "";
	unsigned long long present;
	uint64_t count = 0;
	int node = 0;

	cannot_if(!info, "/proc/zoneinfo");
	wl_open("zones", '[');
	while (fgets(line, sizeof(line), info)) {
		if (sscanf(line, "Node %d, zone %31s", &node, zone) == 2)
			continue;
		if (sscanf(line, " present %llu", &present) == 1 && present) {
			wl_object(NULL, "node %d zone %s present_pages %lu", node, zone,
				  (uint64_t)present);
			count++;
		}
	}
	wl_close(']');
	fclose(info);
	return count;
}

/* Holds every other page of nearly all free memory: much is free, but not contiguous. */
static void child_main(uint64_t size, uint64_t reserve)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), done = 0;
	volatile char *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	wl_write_file("/proc/self/oom_score_adj", "1000");
	if (at == MAP_FAILED)
		_exit(WL_FAILED);
	madvise((void *)at, size, MADV_NOHUGEPAGE);
	while (done < size) {
		if (done % (2 * WL_MIB) == 0 && wl_meminfo("MemFree") < reserve)
			break;
		at[done] = 1;
		done += page;
	}
	for (uint64_t i = 0; i + page <= done; i += 2 * page) {
		madvise((char *)at + i, page, MADV_DONTNEED);
		shared->freed_bytes += page;
	}
	shared->fragmented = 1;
	for (;;)
		pause();
}

static void report(const struct wl_counters *before, uint64_t took)
{
	struct wl_counters grown = wl_grown(before);

	wl_fields("mode %s took_ns %lu", manual ? "manual" : "direct", took);
	wl_growth(&grown);
}

static void by_hand(void)
{
	can(access(compact_path, W_OK), compact_path);
	wl_ready();
	struct wl_counters before = wl_count(vm_keys, WL_COUNT(vm_keys));
	uint64_t start = wl_now();
	for (uint64_t i = 0; i < rounds; i++)
		check(wl_write_file(compact_path, "1"), compact_path);
	start = wl_now() - start;
	report(&before, start);
	wl_result("begins_expected %lu rounds %lu", print_zones() * rounds, rounds);
}

static bool child_ended(pid_t child)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

/* Returns the process that holds every other page. */
static pid_t fragment_memory(void)
{
	uint64_t deadline = wl_now() + seconds * WL_NSEC, total = wl_meminfo("MemTotal");

	lacks_if(total > 4 * WL_GIB,
		 "more than 4 GiB of memory to fragment: --manual, --whole or a guest");
	shared = wl_shared(4096);
	/* kcompactd would defragment memory before a task needs to stall for it. */
	wl_tune("/proc/sys/vm/compaction_proactiveness", "0");
	pid_t child = wl_fork();
	if (child == 0)
		child_main(wl_meminfo("MemAvailable"), total / 20);
	while (!shared->fragmented && !child_ended(child)) {
		lacks_if(wl_now() > deadline, "memory was not fragmented in time");
		wl_nap_ms(10);
	}
	lacks_if(!shared->fragmented, "the process that fragments memory was killed");
	return child;
}

static const char types_path[] = "/proc/pagetypeinfo";
static int rings[4096];
static size_t ring_count;

/* Free memory in unmovable blocks of the order and above is used up before any fallback. */
static uint64_t free_unmovable(void)
{
	FILE *info = fopen(types_path, "re");
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = 0;
	char line[1024];

	cannot_if(!info, types_path);
	while (fgets(line, sizeof(line), info)) {
		char *at = strstr(line, ", type    Unmovable"), *end;

		if (!at)
			continue;
		at += strlen(", type    Unmovable");
		for (uint64_t i = 0; i < 64; i++, at = end) {
			at += strspn(at, " >"); /* more than the kernel counts */
			uint64_t blocks = strtoull(at, &end, 10);
			if (end == at)
				break;
			if (i >= order)
				bytes += blocks * (page << i);
		}
	}
	fclose(info);
	return bytes;
}

/* Blocks of 2^order unmovable pages each: the kernel's memory of unused packet rings. */
static void take_unmovable(uint64_t bytes)
{
	uint64_t block = (uint64_t)sysconf(_SC_PAGESIZE) << order, taken = 0;

	while (taken < bytes && ring_count < WL_COUNT(rings)) {
		uint64_t blocks = (bytes - taken + block - 1) / block;
		struct tpacket_req ring = {.tp_block_size = (unsigned int)block,
					   .tp_frame_size = 2048};
		int fd = can(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), "a packet socket");
		rings[ring_count++] = fd;
		ring.tp_block_nr = blocks < 256 ? (unsigned int)blocks : 256;
		ring.tp_frame_nr = ring.tp_block_nr * (unsigned int)(block / ring.tp_frame_size);
		cannot_if(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)),
			  "a packet ring");
		taken += ring.tp_block_nr * block;
	}
}

static void by_fallbacks(void)
{
	uint64_t bytes = unmovable << 20;

	if (!whole)
		fragment_memory();
	wl_ready();
	/* Memory freed by a second instance could be allocated by this one. */
	int one_at_a_time = can(open(types_path, O_RDONLY | O_CLOEXEC), types_path);
	can(flock(one_at_a_time, LOCK_EX), types_path);
	bytes += free_unmovable();
	if (bytes > wl_meminfo("MemAvailable") / 2)
		wl_die(WL_CANNOT, "%lu MiB of unmovable memory: too much", bytes >> 20);
	take_unmovable(bytes);
	/* With --linger memory stays as it is. */
	wl_result("mode %s order %lu", whole ? "whole" : "fragmented", order);
	while (ring_count)
		close(rings[--ring_count]);
	close(one_at_a_time);
}

static void by_huge_pages(void)
{
	uint64_t pages, grown = 0;

	can(access(huge_path, W_OK), huge_path);
	uint64_t old = wl_number_in(huge_path);
	pid_t child = fragment_memory();
	wl_undo(WL_UNDO_WRITE, 0, huge_path, wl_format("%lu", old));

	wl_ready();

	struct wl_counters before = wl_count(vm_keys, WL_COUNT(vm_keys));
	uint64_t start = wl_now();
	uint64_t deadline = start + seconds * WL_NSEC;
	/* At most half of the freed memory is taken, so that the machine keeps running. */
	for (pages = old + 4; (pages - old) * 2 * WL_MIB < shared->freed_bytes / 2; pages += 4) {
		if (!wl_write_file(huge_path, wl_format("%lu", pages)))
			break;
		grown = wl_vmstat("compact_stall") - before.value[0];
		if (grown >= wanted || wl_now() > deadline || child_ended(child))
			break;
	}
	start = wl_now() - start;

	report(&before, start);
	print_zones();
	/* Huge pages and free memory are restored before the truth is printed, not when --linger
	 * ends. */
	wl_undo_all();
	wl_result("stalls %lu wanted %lu", grown, wanted);
	lacks_if(!grown, "no direct compaction happened");
}

static int workload(void)
{
	if (manual)
		by_hand();
	else if (unmovable)
		by_fallbacks();
	else
		by_huge_pages();
	return WL_OK;
}
