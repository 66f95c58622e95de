/* Writes a file faster than the kernel lets dirty pages grow, and reports its time off CPU. For
 * guests: it sets the machine's limit of dirty pages. */
#include "workload.h"

#define LIMIT "/proc/sys/vm/dirty_"

/* The non-zero one of bytes and ratio is in effect: writing it clears the other one. */
static void limit(const char *bytes, const char *ratio, const char *value)
{
	const char *held = wl_number_in(bytes) ? bytes : ratio;
	char old[64];

	can(wl_slurp(held, old, sizeof(old)), held);
	wl_undo(WL_UNDO_WRITE, 0, held, old);
	wl_set(bytes, value);
}

static int workload(void)
{
	static char buffer[1 << 16];
	uint64_t now, writes = 0;
	struct stat status;
	char path[WL_PATH];
	int fd = wl_temp_file(wl_disk_dir(NULL), 0, path);
	fail_if(fstat(fd, &status), "fstat");
	limit(LIMIT "background_bytes", LIMIT "background_ratio", "1048576");
	limit(LIMIT "bytes", LIMIT "ratio", "2097152");
	wl_ready_with("device %s", wl_format("%u:%u", major(status.st_dev), minor(status.st_dev)));
	uint64_t begin = wl_now();
	uint64_t cpu = wl_clock(CLOCK_THREAD_CPUTIME_ID);
	for (now = begin; now - begin < 2 * WL_NSEC; now = wl_now()) {
		off_t at = (off_t)(writes * sizeof(buffer) % (256 * WL_MIB));

		fail_if(pwrite(fd, buffer, sizeof(buffer), at) != sizeof(buffer), "pwrite");
		writes++;
	}
	return wl_result("writes %lu off_cpu_ns %lu", writes,
			 now - begin - (wl_clock(CLOCK_THREAD_CPUTIME_ID) - cpu));
}
