/* Makes a known number of page faults of each kind. */
#include "workload.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define HUGE (2 * WL_MIB)

WL_NUMBER("anon", anon, 1000, "pages of anonymous memory that are written");
WL_NUMBER("file", file_pages, 0, "pages of a cached file that are written");
WL_NUMBER("major", major_pages, 0, "pages of a file, each read from the disk by itself");
WL_NUMBER("kernel", kernel_pages, 0, "pages that read(2) is the first to write");
WL_NUMBER("thp", thp, 0, "transparent huge pages");
WL_NUMBER("hugetlb", hugetlb, 0, "huge pages of hugetlb");
WL_NUMBER("collapse", collapse, 0, "huge pages, made of small ones afterwards");
static size_t page;

/* Whole huge pages; no other mapping starts within them. */
static char *map_aligned(uint64_t pages)
{
	char *at = wl_anonymous((pages + 1) * HUGE);

	return (char *)(((uintptr_t)at + HUGE - 1) & ~(HUGE - 1));
}

/* One access to each page. */
__attribute__((noinline)) static void workload_touch(volatile char *at, uint64_t pages, size_t step,
						     bool store)
{
	for (uint64_t i = 0; i < pages; i++, at += step) {
		if (store)
			*at = 1;
		else
			(void)*at;
	}
}

static char *map_small(uint64_t pages)
{
	char *at = wl_anonymous(pages * page);

	fail_if(madvise(at, pages * page, MADV_NOHUGEPAGE) && errno != EINVAL, "madvise");
	return at;
}

static int make_file(uint64_t pages, char *path)
{
	int fd = wl_temp_file(wl_disk_dir(NULL), 0, path);

	cannot_if(posix_fallocate(fd, 0, (off_t)(pages * page)), path);
	for (uint64_t i = 0; i < pages; i++)
		cannot_if(pwrite(fd, "x", 1, (off_t)(i * page)) != 1, path);
	fail_if(fsync(fd), path);
	return fd;
}

struct faults {
	uint64_t minor, major;
};

static struct faults now(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (struct faults){(uint64_t)usage.ru_minflt, (uint64_t)usage.ru_majflt};
}

static struct faults since(struct faults before)
{
	struct faults after = now();

	return (struct faults){after.minor - before.minor, after.major - before.major};
}

/* khugepaged collapses them if no call can; returns the number that it collapsed. */
static uint64_t collapse_all(char *at)
{
	static const char interval[] =
		"/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs";
	static const char key[] = "thp_collapse_alloc";
	uint64_t before = wl_vmstat(key), grown = 0, deadline = wl_now() + 60 * WL_NSEC;

	if (!madvise(at, collapse * HUGE, MADV_COLLAPSE))
		return collapse;
	if (!wl_tune(interval, "10"))
		return 0;
	for (; grown < collapse && wl_now() < deadline; wl_nap_ms(20))
		grown = wl_vmstat(key) - before;
	return grown;
}

static void reserve_hugetlb(void)
{
	static const char path[] = "/proc/sys/vm/nr_hugepages";

	cannot_if(!wl_tune(path, wl_format("%lu", wl_number_in(path) + hugetlb)), path);
	if (wl_meminfo("HugePages_Free") >> 10 < hugetlb)
		wl_die(WL_CANNOT, "no memory for %lu huge pages", hugetlb);
}

static int workload(void)
{
	char path[WL_PATH] = "", cold_path[WL_PATH] = "", *joined = NULL;
	struct faults all;
	uint64_t collapsed = 0;
	int fd;

	page = (size_t)sysconf(_SC_PAGESIZE);
	struct {
		const char *key;
		uint64_t pages;
		size_t step;
		char *at;
		struct faults by;
	} kinds[] = {{.key = "anon", anon, page},	 {.key = "file", file_pages, page},
		     {.key = "cold", major_pages, page}, {.key = "kernel", kernel_pages, page},
		     {.key = "thp", thp, HUGE},		 {.key = "hugetlb", hugetlb, HUGE}};
	kinds[0].at = map_small(anon ? anon : 1);
	if (file_pages)
		kinds[1].at = wl_map(file_pages * page, MAP_SHARED, make_file(file_pages, path));
	if (major_pages) {
		fd = make_file(major_pages, cold_path);
		kinds[2].at = wl_map(major_pages * page, MAP_SHARED, fd);
		must(madvise(kinds[2].at, major_pages * page, MADV_RANDOM), "madvise");
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	if (kernel_pages)
		kinds[3].at = map_small(kernel_pages);
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (thp) {
		kinds[4].at = map_aligned(thp);
		can(madvise(kinds[4].at, thp * HUGE, MADV_HUGEPAGE), "transparent huge pages");
	}
	if (hugetlb) {
		reserve_hugetlb();
		kinds[5].at = wl_map(hugetlb * HUGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
	}
	if (collapse) {
		joined = map_aligned(collapse);
		madvise(joined, collapse * HUGE, MADV_NOHUGEPAGE);
		workload_touch(joined, collapse * HUGE / page, page, true);
		can(madvise(joined, collapse * HUGE, MADV_HUGEPAGE), "transparent huge pages");
	}
	wl_ready_with("file %s cold_file %s", path, cold_path);

	uint64_t took = wl_now();
	struct faults start = now();
	for (size_t i = 0; i < WL_COUNT(kinds); i++) {
		all = now();
		for (uint64_t done = 0; i == 3 && done < kernel_pages * page;)
			done += (uint64_t)must(
				read(zero, kinds[i].at + done, kernel_pages * page - done), "read");
		if (i != 3)
			workload_touch(kinds[i].at, kinds[i].pages, kinds[i].step, i != 2);
		kinds[i].by = since(all);
	}
	if (collapse)
		collapsed = collapse_all(joined);
	took = wl_now() - took;

	for (size_t i = 0; i < WL_COUNT(kinds); i++)
		wl_object(kinds[i].key, "minor %lu major %lu", kinds[i].by.minor,
			  kinds[i].by.major);
	all = since(start);
	wl_undo_all();
	return wl_result("collapsed %lu faults %lu took_ns %lu", collapsed, all.minor + all.major,
			 took);
}
