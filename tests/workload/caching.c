/* Holds a file of which a known part is in the page cache, open or mapped. */
#include "workload.h"

WL_TEXT("dir", dir, NULL, "where the file is made (default: one on a disk)");
WL_BOUNDED("size", size, 4 * WL_MIB, 1, WL_GIB, "of the file");
WL_FLAG("half", half, "drop the second half from the cache");
WL_BOUNDED("dirty", dirty, 0, 0, 1 << 18, "pages that are written again at the end");
WL_FLAG("mapped", mapped, "map it, and close it");
WL_FLAG("unlink", unlinked, "remove its name");
WL_BOUNDED("threads", threads, 0, 0, 256, "that only wait");
WL_BOUNDED("ms", ms, 0, 0, 100000, "hold it so long after the start");
WL_BOUNDED("children", children, 0, 0, 64, "that have it open, too");

static uint64_t page, pages;

static void *wait_forever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static int workload(void)
{
	char path[WL_PATH], *buffer = calloc(1, size);
	pid_t pids[64];
	struct stat st;

	page = (uint64_t)sysconf(_SC_PAGESIZE);
	pages = (size + page - 1) / page;
	usage_if(dirty > pages, "--dirty: more than the file has");
	int fd = wl_temp_file(dir ? dir : wl_disk_dir(NULL), 0, path);
	fail_if(!buffer || pwrite(fd, buffer, size, 0) != (ssize_t)size, path);
	must(fsync(fd), path);
	if (half)
		posix_fadvise(fd, (off_t)(pages / 2 * page), 0, POSIX_FADV_DONTNEED);
	must(fstat(fd, &st), path);
	if (unlinked) {
		unlink(path);
		wl_undo_count = wl_undo_count - 1;
	}
	for (uint64_t i = 0; i < threads; i++)
		wl_thread(wait_forever, NULL);
	for (uint64_t i = 0; i < children; i++) {
		pids[i] = wl_fork();
		if (pids[i] == 0)
			wait_forever(NULL);
	}
	if (dirty)
		fail_if(pwrite(fd, buffer, dirty * page, 0) != (ssize_t)(dirty * page), path);
	uint64_t cached = wl_resident(fd, size);
	if (mapped) {
		fail_if(mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED, "mmap");
		close(fd);
	}
	wl_fields("path %s inode %lu device_major %u device_minor %u", path, (uint64_t)st.st_ino,
		  major(st.st_dev), minor(st.st_dev));
	wl_fields("size %lu cached_pages %lu file_pages %lu page %lu", size, cached, pages, page);
	wl_ready();
	wl_nap_ms(ms);
	for (uint64_t i = 0; i < children; i++) {
		kill(pids[i], SIGKILL);
		wl_reap(pids[i]);
	}
	return wl_result("cached_pages %lu", cached);
}
