/* Makes direct compaction (huge pages out of fragmented memory), compaction by hand, or page
 * allocations that fall back on another migrate type. */
#include "workload.h"

#include <linux/if_packet.h>
#include <sys/file.h>
#include <sys/socket.h>

static uint64_t wanted = 4, seconds = 20, step = 4;
static uint64_t unmovable, order;
static bool manual, force, whole;
static uint64_t rounds = 1;

static const char *const vm_keys[] = {
	"compact_stall",	   "compact_success",	   "compact_fail",
	"compact_migrate_scanned", "compact_free_scanned", "compact_isolated",
	"compact_daemon_wake",	   "allocstall*",	   "oom_kill",
};

static const char compact_path[] = "/proc/sys/vm/compact_memory";
static const char proactive_path[] = "/proc/sys/vm/compaction_proactiveness";
static const char huge_path[] = "/proc/sys/vm/nr_hugepages";

static struct {
	volatile uint32_t fragmented;
	volatile uint64_t touched_bytes, freed_bytes;
} * shared;

static uint64_t vmstat(const char *key)
{
	struct wl_counters c;

	wl_count(&c, "/proc/vmstat", &key, 1);
	return c.value[0];
}

/* One compaction run begins for each zone that has pages. */
static uint64_t print_zones(void)
{
	FILE *info = fopen("/proc/zoneinfo", "re");
	char line[512], zone[32] = "";
	unsigned long long present;
	uint64_t count = 0;
	int node = 0;

	if (!info)
		wl_die(WL_CANNOT, "/proc/zoneinfo: %m");
	wl_open("zones", '[');
	while (fgets(line, sizeof(line), info)) {
		if (sscanf(line, "Node %d, zone %31s", &node, zone) == 2)
			continue;
		if (sscanf(line, " present %llu", &present) == 1 && present) {
			wl_open(NULL, '{');
			wl_i64("node", node);
			wl_str("zone", zone);
			wl_u64("present_pages", present);
			wl_close('}');
			count++;
		}
	}
	wl_close(']');
	fclose(info);
	return count;
}

/* Holds every other page of nearly all free memory: much is free, nothing of it in one piece. */
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
	shared->touched_bytes = done;
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
	struct wl_counters after;

	wl_count(&after, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));
	wl_str("mode", manual ? "manual" : "direct");
	wl_u64("took_ns", took);
	wl_growth("vmstat", before, &after);
}

static void by_hand(void)
{
	struct wl_counters before;
	uint64_t start, zones;

	if (access(compact_path, W_OK))
		wl_die(WL_CANNOT, "%s: %m", compact_path);
	wl_ready();
	wl_count(&before, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));
	start = wl_now();
	for (uint64_t i = 0; i < rounds; i++)
		if (!wl_write_file(compact_path, "1"))
			wl_die(WL_FAILED, "%s: %m", compact_path);
	start = wl_now() - start;
	wl_line_begin();
	report(&before, start);
	zones = print_zones();
	wl_u64("rounds", rounds);
	wl_u64("begins_expected", zones * rounds);
	wl_finish();
}

static bool child_ended(pid_t child)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

/* Returns the process that holds every other page. */
static pid_t fragment_memory(uint64_t *took)
{
	uint64_t start, deadline, total = wl_meminfo("MemTotal");
	char text[64];
	pid_t child;

	if (total > 4 * WL_GIB && !force)
		wl_die(WL_CANNOT,
		       "more than 4 GiB of memory to fragment: --manual, --whole, a guest or "
		       "--force");
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		wl_die(WL_FAILED, "%m");
	start = wl_now();
	deadline = start + seconds * WL_NSEC;
	/* kcompactd would mend the fragments before a task needs to stall for them. */
	if (wl_slurp(proactive_path, text, sizeof(text)) > 0) {
		wl_undo(WL_UNDO_WRITE, 0, proactive_path, text);
		wl_write_file(proactive_path, "0");
	}
	child = wl_fork();
	if (child == 0)
		child_main(wl_meminfo("MemAvailable"), total / 20);
	while (!shared->fragmented && !child_ended(child)) {
		if (wl_now() > deadline)
			wl_die(WL_CANNOT, "memory was not fragmented in time");
		wl_nap_ms(10);
	}
	if (!shared->fragmented)
		wl_die(WL_CANNOT, "the process that fragments memory was killed");
	*took = wl_now() - start;
	return child;
}

static const char types_path[] = "/proc/pagetypeinfo";
static int rings[4096];
static size_t ring_count;

/* What is free in unmovable blocks of the order and above: allocations fall back after it is used
 * up.
 */
static uint64_t free_unmovable(void)
{
	FILE *info = fopen(types_path, "re");
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = 0;
	char line[1024];

	if (!info)
		wl_die(WL_CANNOT, "%s: %m", types_path);
	while (fgets(line, sizeof(line), info)) {
		char *at = strstr(line, ", type    Unmovable"), *end;

		if (!at)
			continue;
		at += strlen(", type    Unmovable");
		for (uint64_t i = 0; i < 64; i++, at = end) {
			uint64_t blocks;

			at += strspn(at, " >"); /* more than it would count */
			blocks = strtoull(at, &end, 10);
			if (end == at)
				break;
			if (i >= order)
				bytes += blocks * (page << i);
		}
	}
	fclose(info);
	return bytes;
}

/* Blocks of 2^order unmovable pages each: the kernel's side of packet rings that are not used. */
static uint64_t take_unmovable(uint64_t bytes)
{
	uint64_t block = (uint64_t)sysconf(_SC_PAGESIZE) << order, taken = 0;

	while (taken < bytes && ring_count < WL_COUNT(rings)) {
		uint64_t blocks = (bytes - taken + block - 1) / block;
		struct tpacket_req ring = {.tp_block_size = (unsigned int)block,
					   .tp_frame_size = 2048};
		int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

		if (fd < 0)
			wl_die(WL_CANNOT, "a packet socket: %m");
		rings[ring_count++] = fd;
		ring.tp_block_nr = blocks < 256 ? (unsigned int)blocks : 256;
		ring.tp_frame_nr = ring.tp_block_nr * (unsigned int)(block / ring.tp_frame_size);
		if (setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)))
			wl_die(WL_CANNOT, "a packet ring: %m");
		taken += ring.tp_block_nr * block;
	}
	return taken;
}

static void by_fallbacks(void)
{
	uint64_t frag_ns = 0, bytes = unmovable << 20, taken;
	pid_t child = whole ? 0 : fragment_memory(&frag_ns);
	int one_at_a_time;

	wl_ready();
	/* What another of us gives back would be there to be taken. */
	one_at_a_time = open(types_path, O_RDONLY | O_CLOEXEC);
	if (one_at_a_time < 0 || flock(one_at_a_time, LOCK_EX))
		wl_die(WL_CANNOT, "%s: %m", types_path);
	bytes += free_unmovable();
	if (bytes > wl_meminfo("MemAvailable") / 2)
		wl_die(WL_CANNOT, "%llu MiB of unmovable memory: too much",
		       (unsigned long long)bytes >> 20);
	taken = take_unmovable(bytes);
	wl_line_begin();
	wl_str("mode", whole ? "whole" : "fragmented");
	wl_u64("taken_bytes", taken);
	wl_u64("order", order);
	wl_u64("fragmenting_ns", frag_ns);
	wl_i64("holder_pid", child);
	wl_finish(); /* with --linger memory stays as it is */
	while (ring_count)
		close(rings[--ring_count]);
	close(one_at_a_time);
}

static void by_huge_pages(void)
{
	uint64_t start, frag_ns, deadline, old, pages, grown = 0, got = 0;
	struct wl_counters before;
	char text[64];
	pid_t child;

	if (wl_slurp(huge_path, text, sizeof(text)) < 0 || access(huge_path, W_OK))
		wl_die(WL_CANNOT, "%s: %m", huge_path);
	old = strtoull(text, NULL, 10);
	child = fragment_memory(&frag_ns);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)old);
	wl_undo(WL_UNDO_WRITE, 0, huge_path, text);

	wl_ready();

	wl_count(&before, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));
	start = wl_now();
	deadline = start + seconds * WL_NSEC;
	/* At most half of what was freed is taken, so that the machine keeps breathing. */
	for (pages = old + step; (pages - old) * 2 * WL_MIB < shared->freed_bytes / 2;
	     pages += step) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)pages);
		if (!wl_write_file(huge_path, text))
			break;
		grown = vmstat("compact_stall") - before.value[0];
		if (grown >= wanted || wl_now() > deadline || child_ended(child))
			break;
	}
	start = wl_now() - start;
	if (wl_slurp(huge_path, text, sizeof(text)) > 0)
		got = strtoull(text, NULL, 10) - old;

	wl_line_begin();
	report(&before, start);
	wl_u64("stalls", grown);
	wl_u64("wanted", wanted);
	wl_u64("huge_pages_got", got);
	wl_u64("touched_bytes", shared->touched_bytes);
	wl_u64("freed_bytes", shared->freed_bytes);
	wl_u64("fragmenting_ns", frag_ns);
	wl_i64("holder_pid", child);
	print_zones();
	/* Huge pages back and memory free before the truth is out, not when --linger ends. */
	wl_undo_all();
	wl_finish();
	if (!grown)
		wl_die(WL_CANNOT, "no direct compaction happened");
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"manual", WL_FLAG, &manual, NULL, "write 1 to vm.compact_memory instead"},
		{"rounds", WL_NUM, &rounds, "M", "this many times (--manual)"},
		{"events", WL_NUM, &wanted, "N", "go on until compact_stall grew this much"},
		{"step", WL_NUM, &step, "N", "huge pages asked for at a time"},
		{"seconds", WL_NUM, &seconds, "S", "bound for fragmenting, and for compacting"},
		{"unmovable", WL_NUM, &unmovable, "MIB",
		 "take this much unmovable memory instead, and what is free"},
		{"order", WL_NUM, &order, "N", "2^N pages at a time (--unmovable)"},
		{"whole", WL_FLAG, &whole, NULL, "do not fragment memory first (--unmovable)"},
		{"force", WL_FLAG, &force, NULL, "fragment memory even above 4 GiB"},
		{0},
	};

	wl_start(argc, argv, "compaction",
		 "Makes the kernel compact memory in this process, or fall back on other memory.",
		 opts);
	if (seconds < 1 || seconds > 600 || step < 1 || step > 1000 || rounds < 1 || rounds > 1000)
		wl_die(WL_USAGE, "want 1 to 600 seconds, steps and rounds of 1 to 1000");
	if (unmovable > 4096 || order > 10)
		wl_die(WL_USAGE, "want 4096 MiB and order 10 at most");
	if (manual)
		by_hand();
	else if (unmovable)
		by_fallbacks();
	else
		by_huge_pages();
	return WL_OK;
}
