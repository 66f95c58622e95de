/* Reads a file again and again in a memory cgroup that cannot hold it: its pages are evicted, and
 * come back. */
#include "memcg.h"

WL_TEXT("dir", dir, NULL, "where the sparse file is made (default: one on a disk)");
WL_BOUNDED("limit", limit, 16 * WL_MIB, WL_MIB, WL_GIB, "of the memory cgroup, in bytes");
WL_BOUNDED("size", size, 48 * WL_MIB, WL_MIB, WL_GIB, "of the file");
WL_BOUNDED("rounds", rounds, 4, 1, 1000, "how often it is read");

static char path[WL_PATH];

static void child_main(int gate)
{
	static char buffer[1 << 17];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char byte;

	if (fd < 0 || read(gate, &byte, 1) != 1)
		_exit(WL_FAILED);
	for (uint64_t i = 0; i < rounds; i++) {
		lseek(fd, 0, SEEK_SET);
		for (uint64_t at = 0; at < size;) {
			ssize_t got = read(fd, buffer, sizeof(buffer));

			if (got <= 0)
				_exit(WL_FAILED);
			at += (uint64_t)got;
		}
	}
	_exit(WL_OK);
}

static int workload(void)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct stat st;
	int gate[2];

	usage_if(size <= limit, "--size: must be more than --limit");
	int fd = wl_temp_file(wl_disk_dir(dir), 0, path);
	can(ftruncate(fd, (off_t)size), path);
	make_memcg(limit, false);
	must(stat(cg_dir, &st), cg_dir);
	wl_pipe(gate);
	pid_t child = wl_fork();
	if (child == 0) {
		close(gate[1]);
		child_main(gate[0]);
	}
	close(gate[0]);
	enter_memcg(child);
	wl_ready_with("worker_pid %d cgroup %s cgroup_id %lu", child, cg_dir, (uint64_t)st.st_ino);
	wl_tell(gate);
	int status = wl_reap(child);
	fail_if(!WIFEXITED(status) || WEXITSTATUS(status), "the reader failed");
	/* The kernel's count. */
	wl_fields("refaulted_pages %lu", cg_number("memory.stat", "workingset_refault_file"));
	return wl_result("worker_pid %d cgroup %s cgroup_id %lu file_pages %lu limit_pages %lu "
			 "rounds %lu",
			 child, cg_dir, (uint64_t)st.st_ino, size / page, limit / page, rounds);
}
