/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* faulter - makes a known number of page faults of each kind. */
#include "workload.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define HUGE (2 * WL_MIB)

static const char *const vm_keys[] = {"pgfault", "pgmajfault", "thp_fault_alloc",
				      "thp_fault_fallback", "thp_collapse_alloc"};

static uint64_t anon = 1000, file_pages, major_pages, kernel_pages, thp, hugetlb, collapse;
static const char *dir;
static size_t page;

static void *map(size_t bytes, int flags, int fd)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (at == MAP_FAILED)
		wl_die(errno == ENOMEM ? WL_CANNOT : WL_FAILED, "mmap: %m");
	return at;
}

/* Whole huge pages; no other mapping begins within them. */
static char *map_aligned(uint64_t pages)
{
	char *at = map((pages + 1) * HUGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

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
	char *at = map(pages * page, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (madvise(at, pages * page, MADV_NOHUGEPAGE) && errno != EINVAL)
		wl_die(WL_FAILED, "madvise: %m");
	return at;
}

static int make_file(uint64_t pages, char *path)
{
	int fd = wl_temp_file(wl_disk_dir(dir), 0, path, WL_PATH);

	if (posix_fallocate(fd, 0, (off_t)(pages * page)))
		wl_die(WL_CANNOT, "%s: no room", path);
	for (uint64_t i = 0; i < pages; i++)
		if (pwrite(fd, "x", 1, (off_t)(i * page)) != 1)
			wl_die(WL_CANNOT, "%s: %m", path);
	if (fsync(fd))
		wl_die(WL_FAILED, "%s: %m", path);
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

static void say(const char *key, struct faults f)
{
	wl_open(key, '{');
	wl_u64("minor", f.minor);
	wl_u64("major", f.major);
	wl_close('}');
}

/* khugepaged does it where no call can; the number of those that it did. */
static uint64_t collapse_all(char *at)
{
	static const char interval[] =
		"/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs";
	uint64_t before, grown = 0, deadline = wl_now() + 60 * WL_NSEC;
	struct wl_counters c;
	char old[32];

	wl_count(&c, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));
	before = c.value[4];
	if (!madvise(at, collapse * HUGE, MADV_COLLAPSE))
		return collapse;
	if (wl_slurp(interval, old, sizeof(old)) < 0)
		return 0;
	wl_undo(WL_UNDO_WRITE, 0, interval, old);
	if (!wl_write_file(interval, "10"))
		return 0;
	for (; grown < collapse && wl_now() < deadline; wl_nap_ms(20)) {
		wl_count(&c, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));
		grown = c.value[4] - before;
	}
	return grown;
}

static void reserve_hugetlb(void)
{
	static const char path[] = "/proc/sys/vm/nr_hugepages";
	char old[32], text[32];

	if (wl_slurp(path, old, sizeof(old)) < 0)
		wl_die(WL_CANNOT, "no huge pages on this kernel");
	wl_undo(WL_UNDO_WRITE, 0, path, old);
	snprintf(text, sizeof(text), "%llu",
		 (unsigned long long)(strtoull(old, NULL, 10) + hugetlb));
	if (!wl_write_file(path, text))
		wl_die(WL_CANNOT, "%s: %m", path);
	if (wl_meminfo("HugePages_Free") >> 10 < hugetlb)
		wl_die(WL_CANNOT, "no memory for %llu huge pages", (unsigned long long)hugetlb);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"anon", WL_NUM, &anon, "N", "pages of anonymous memory that are written"},
		{"file", WL_NUM, &file_pages, "N", "pages of a cached file that are written"},
		{"major", WL_NUM, &major_pages, "N",
		 "pages of a file that are read from the disk, each by itself"},
		{"kernel", WL_NUM, &kernel_pages, "N", "pages that read(2) is the first to write"},
		{"thp", WL_NUM, &thp, "N", "transparent huge pages"},
		{"hugetlb", WL_NUM, &hugetlb, "N", "huge pages of hugetlb"},
		{"collapse", WL_NUM, &collapse, "N",
		 "huge pages that small ones are made into afterwards"},
		{"dir", WL_STR, &dir, "D", "where files are made (default: one on a disk)"},
		{0},
	};
	char path[WL_PATH] = "", cold_path[WL_PATH] = "";
	char *small, *cached = NULL, *cold = NULL, *by_kernel = NULL, *huge = NULL, *tlb = NULL,
		     *joined = NULL;
	struct faults start, by_anon, by_file, by_major, by_read, by_thp, by_hugetlb, all;
	struct wl_counters before, after;
	uint64_t collapsed = 0, took;
	int zero;

	wl_start(argc, argv, "faulter", "Makes page faults of each kind.", opts);
	page = (size_t)sysconf(_SC_PAGESIZE);
	small = map_small(anon ? anon : 1);
	if (file_pages)
		cached = map(file_pages * page, MAP_SHARED, make_file(file_pages, path));
	if (major_pages) {
		int fd = make_file(major_pages, cold_path);

		cold = map(major_pages * page, MAP_SHARED, fd);
		if (madvise(cold, major_pages * page, MADV_RANDOM))
			wl_die(WL_FAILED, "madvise: %m");
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	if (kernel_pages)
		by_kernel = map_small(kernel_pages);
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (thp) {
		huge = map_aligned(thp);
		if (madvise(huge, thp * HUGE, MADV_HUGEPAGE))
			wl_die(WL_CANNOT, "no transparent huge pages: %m");
	}
	if (hugetlb) {
		reserve_hugetlb();
		tlb = map(hugetlb * HUGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
	}
	if (collapse) {
		joined = map_aligned(collapse);
		madvise(joined, collapse * HUGE, MADV_NOHUGEPAGE);
		workload_touch(joined, collapse * HUGE / page, page, true);
		if (madvise(joined, collapse * HUGE, MADV_HUGEPAGE))
			wl_die(WL_CANNOT, "no transparent huge pages: %m");
	}
	wl_ready_begin();
	wl_str("file", path);
	wl_str("cold_file", cold_path);
	wl_ready_end();

	wl_count(&before, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));
	took = wl_now();
	start = now();
	workload_touch(small, anon, page, true);
	by_anon = since(start);
	all = now();
	workload_touch(cached, file_pages, page, true);
	by_file = since(all);
	all = now();
	workload_touch(cold, major_pages, page, false);
	by_major = since(all);
	all = now();
	for (uint64_t done = 0; done < kernel_pages * page;) {
		ssize_t got = read(zero, by_kernel + done, kernel_pages * page - done);

		if (got <= 0)
			wl_die(WL_FAILED, "/dev/zero: %m");
		done += (uint64_t)got;
	}
	by_read = since(all);
	all = now();
	workload_touch(huge, thp, HUGE, true);
	by_thp = since(all);
	all = now();
	workload_touch(tlb, hugetlb, HUGE, true);
	by_hugetlb = since(all);
	if (collapse)
		collapsed = collapse_all(joined);
	took = wl_now() - took;
	wl_count(&after, "/proc/vmstat", vm_keys, WL_COUNT(vm_keys));

	wl_line_begin();
	say("anon", by_anon);
	say("file", by_file);
	say("cold", by_major);
	say("kernel", by_read);
	say("thp", by_thp);
	say("hugetlb", by_hugetlb);
	wl_u64("collapsed", collapsed);
	all = since(start);
	wl_u64("faults", all.minor + all.major);
	wl_u64("took_ns", took);
	wl_growth("vmstat", &before, &after);
	wl_undo_all();
	wl_finish();
	return WL_OK;
}
