/* Writes a file faster than the kernel lets dirty pages grow: its time off the CPU. */
#include "workload.h"

static const char *const limits[] = {"/proc/sys/vm/dirty_background_bytes",
				     "/proc/sys/vm/dirty_background_ratio",
				     "/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"};

/* Of bytes and ratio the one that is not 0 holds: to write it clears the other one. */
static void limit(const char *bytes, const char *ratio, const char *value)
{
	char old[64];

	if (wl_slurp(bytes, old, sizeof(old)) < 0)
		wl_die(WL_CANNOT, "%s: %m", bytes);
	if (atoll(old)) {
		wl_undo(WL_UNDO_WRITE, 0, bytes, old);
	} else {
		wl_slurp(ratio, old, sizeof(old));
		wl_undo(WL_UNDO_WRITE, 0, ratio, old);
	}
	if (!wl_write_file(bytes, value))
		wl_die(WL_CANNOT, "%s: %m", bytes);
}

int main(int argc, char **argv)
{
	static uint64_t milliseconds = 2000, most_mib = 256;
	const struct wl_opt opts[] = {
		{"ms", WL_NUM, &milliseconds, "MS", "how long it writes"},
		{"mib", WL_NUM, &most_mib, "MIB", "size of the file, which is written over"},
		{0},
	};
	static char buffer[1 << 16];
	uint64_t begin, cpu, now, writes = 0;
	struct stat status;
	char path[WL_PATH], device[32];
	int fd;

	wl_start(
		argc, argv, "throttled",
		"Writes faster than the kernel lets dirty pages grow. For guests: it sets how many "
		"the machine may have.",
		opts);
	fd = wl_temp_file(wl_disk_dir(NULL), 0, path, sizeof(path));
	if (fstat(fd, &status))
		wl_die(WL_FAILED, "fstat: %m");
	limit(limits[0], limits[1], "1048576");
	limit(limits[2], limits[3], "2097152");
	snprintf(device, sizeof(device), "%u:%u", major(status.st_dev), minor(status.st_dev));
	wl_ready_begin();
	wl_str("device", device);
	wl_ready_end();

	begin = wl_now();
	cpu = wl_clock(CLOCK_THREAD_CPUTIME_ID);
	for (now = begin; now - begin < milliseconds * 1000000; now = wl_now()) {
		off_t at = (off_t)(writes * sizeof(buffer) % (most_mib * WL_MIB));

		if (pwrite(fd, buffer, sizeof(buffer), at) != sizeof(buffer))
			wl_die(WL_FAILED, "pwrite: %m");
		writes++;
	}
	wl_line_begin();
	wl_u64("writes", writes);
	wl_u64("off_cpu_ns", now - begin - (wl_clock(CLOCK_THREAD_CPUTIME_ID) - cpu));
	wl_finish();
	return WL_OK;
}
