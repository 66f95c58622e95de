/* Has memory swapped out, and reads it back page by page. */
#include "blockdev.h"
#include "memcg.h"

static const char *const vm_keys[] = {"pswpin", "pswpout", "pgmajfault"};

static const char *make = "zram";
static uint64_t pages = 200;
static size_t page;

/* mkswap(8): a page with the number of the last one, and a word in its end. */
static void write_header(const char *node, uint64_t bytes)
{
	char header[65536] = "";
	uint32_t fields[] = {1, (uint32_t)(bytes / page - 1), 0};
	int fd = open(node, O_WRONLY | O_CLOEXEC);

	memcpy(header + 1024, fields, sizeof(fields));
	memcpy(header + page - 10, "SWAPSPACE2", 10);
	if (fd < 0 || write(fd, header, page) != (ssize_t)page || fsync(fd) || close(fd))
		wl_die(WL_CANNOT, "%s: %m", node);
}

static void make_swap(char *node, size_t room)
{
	uint64_t bytes = 4 * pages * page + 8 * WL_MIB;

	if (!strcmp(make, "zram"))
		make_zram(bytes, node, room);
	else if (!strcmp(make, "loop"))
		close(make_loop(NULL, bytes, node, room));
	else
		wl_die(WL_USAGE, "--make: zram or loop");
	write_header(node, bytes);
	wl_undo(WL_UNDO_SWAPOFF, 0, node, NULL);
	if (swapon(node, SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK))
		wl_die(WL_CANNOT, "swapon: %m");
}

/* Not in order, so that nothing is gained by reading ahead. */
__attribute__((noinline)) static void workload_read_back(volatile char *at)
{
	for (uint64_t i = 0; i < pages; i++)
		(void)at[i * 7919 % pages * page];
}

static void write_all(volatile char *at)
{
	/* No page may be the same as another, or as one of zeros: those are not written. */
	for (uint64_t i = 0; i < pages; i++)
		for (uint64_t j = 0; j < page; j += sizeof(uint64_t))
			*(volatile uint64_t *)(at + i * page + j) =
				(i + 1) * UINT64_C(0x9e3779b97f4a7c15) + j;
}

/* Where no process is left the cgroup can go. */
static void enter_ourselves(void)
{
	char path[WL_PATH + 128], pid[32];

	make_memcg(pages * page / 2 + 4 * WL_MIB, true);
	snprintf(path, sizeof(path), "%s/cgroup.procs", cg_root);
	snprintf(pid, sizeof(pid), "%d", getpid());
	wl_undo(WL_UNDO_WRITE, 0, path, pid);
	enter_memcg(getpid());
}

static uint64_t majors(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_majflt;
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"pages", WL_NUM, &pages, "N", "pages that are swapped out and in"},
		{"make", WL_STR, &make, "KIND",
		 "where they go: zram, which reads each at once, or loop, on a disk"},
		{0},
	};
	struct wl_counters before, after;
	uint64_t major, took;
	char node[WL_PATH];
	volatile char *at;

	wl_start(argc, argv, "swapper", "Waits for memory that was swapped out.", opts);
	page = (size_t)sysconf(_SC_PAGESIZE);
	if (pages < 1 || pages > 100000 || pages % 7919 == 0)
		wl_die(WL_USAGE, "--pages: 1 to 100000, and no multiple of 7919");
	make_swap(node, sizeof(node));
	if (!strcmp(make, "loop"))
		enter_ourselves();
	at = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		wl_die(WL_FAILED, "mmap: %m");
	madvise((void *)at, pages * page, MADV_NOHUGEPAGE);
	madvise((void *)at, pages * page, MADV_RANDOM);
	write_all(at);
	workload_read_back(at);
	if (!strcmp(make, "zram") && madvise((void *)at, pages * page, MADV_PAGEOUT))
		wl_die(WL_CANNOT, "MADV_PAGEOUT: %m");

	wl_ready_begin();
	wl_str("device", node + strlen("/dev/"));
	wl_ready_end();

	wl_count(&before, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));
	major = majors();
	took = wl_now();
	workload_read_back(at);
	took = wl_now() - took;
	major = majors() - major;
	wl_count(&after, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));

	wl_line_begin();
	wl_str("device", node + strlen("/dev/"));
	wl_u64("major", major);
	wl_u64("page_bytes", page);
	wl_u64("took_ns", took);
	wl_growth("vmstat", &before, &after);
	wl_finish();
	munmap((void *)at, pages * page);
	if (!major)
		wl_die(WL_CANNOT, "nothing was swapped out");
	return WL_OK;
}
