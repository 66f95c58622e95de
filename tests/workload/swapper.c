/* Forces memory to swap, and reads it back page by page. */
#include "blockdev.h"
#include "memcg.h"

static const char *const vm_keys[] = {"pswpin", "pswpout", "pgmajfault"};

WL_NUMBER("pages", pages, 200, "pages that are swapped out and in");
WL_TEXT("make", make, "zram", "where they go: zram, which reads each at once, or loop, on a disk");
WL_FLAG("out", out, "swap out when released, and do not read back (--make zram)");
static size_t page;
static bool on_disk;

/* mkswap(8): a page with the number of the last one, and a signature at its end. */
static void write_header(const char *node, uint64_t bytes)
{
	char header[65536] = "";
	uint32_t fields[] = {1, (uint32_t)(bytes / page - 1), 0};
	int fd = open(node, O_WRONLY | O_CLOEXEC);

	memcpy(header + 1024, fields, sizeof(fields));
	memcpy(header + page - 10, "SWAPSPACE2", 10);
	cannot_if(fd < 0 || write(fd, header, page) != (ssize_t)page || fsync(fd) || close(fd),
		  node);
}

static void make_swap(char *node)
{
	uint64_t bytes = 4 * pages * page + 8 * WL_MIB;

	if (on_disk)
		close(make_loop(NULL, bytes, node));
	else
		make_zram(bytes, node);
	write_header(node, bytes);
	wl_undo(WL_UNDO_SWAPOFF, 0, node, NULL);
	can(swapon(node, SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK), "swapon");
}

/* Not in order, so that read-ahead has no effect. */
__attribute__((noinline)) static void workload_read_back(volatile char *at)
{
	for (uint64_t i = 0; i < pages; i++)
		(void)at[i * 7919 % pages * page];
}

static void write_all(volatile char *at)
{
	/* All pages must differ from each other and from zeros: such pages are not written. */
	for (uint64_t i = 0; i < pages; i++)
		for (uint64_t j = 0; j < page; j += sizeof(uint64_t))
			*(volatile uint64_t *)(at + i * page + j) =
				(i + 1) * UINT64_C(0x9e3779b97f4a7c15) + j;
}

static void page_out(volatile char *at)
{
	cannot_if(!on_disk && madvise((void *)at, pages * page, MADV_PAGEOUT), "MADV_PAGEOUT");
}

/* The cgroup can be removed when it has no processes. */
static void enter_ourselves(void)
{
	make_memcg(pages * page / 2 + 4 * WL_MIB, true);
	wl_undo(WL_UNDO_WRITE, 0, wl_format("%s/cgroup.procs", cg_root), wl_format("%d", getpid()));
	enter_memcg(getpid());
}

static uint64_t majors(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_majflt;
}

static int workload(void)
{
	char node[NODE_ROOM];

	page = (size_t)sysconf(_SC_PAGESIZE);
	usage_if(pages < 1 || pages > 100000 || pages % 7919 == 0,
		 "--pages: 1 to 100000, and no multiple of 7919");
	wl_one_of("make", make, "zram loop");
	on_disk = !strcmp(make, "loop");
	usage_if(out && on_disk, "--out: needs --make zram");
	make_swap(node);
	if (on_disk)
		enter_ourselves();
	volatile char *at = wl_anonymous(pages * page);
	madvise((void *)at, pages * page, MADV_NOHUGEPAGE);
	madvise((void *)at, pages * page, MADV_RANDOM);
	write_all(at);
	workload_read_back(at);
	if (!out)
		page_out(at);

	wl_ready_with("device %s", node + strlen("/dev/"));

	struct wl_counters before = wl_count(vm_keys, WL_COUNT(vm_keys));
	if (out) {
		page_out(at);
		before = wl_grown(&before);
		wl_growth(&before);
		wl_result("device %s page_bytes %lu", node + strlen("/dev/"), page);
		munmap((void *)at, pages * page);
		lacks_if(!before.value[1], "nothing was swapped out");
		return WL_OK;
	}
	uint64_t major = majors();
	uint64_t took = wl_now();
	workload_read_back(at);
	took = wl_now() - took;
	major = majors() - major;
	before = wl_grown(&before);

	wl_growth(&before);
	wl_result("device %s major %lu page_bytes %lu took_ns %lu", node + strlen("/dev/"), major,
		  page, took);
	munmap((void *)at, pages * page);
	lacks_if(!major, "nothing was swapped out");
	return WL_OK;
}
