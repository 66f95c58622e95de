/* Calls a function of this program, or of the kernel, many times in a row. */
#include "workload.h"

WL_NUMBER("count", count, 100, "how many calls");
WL_NUMBER("sleep-us", sleep_us, 0, "rest so long after each");
WL_FLAG("reads", reads, "read a byte of /dev/zero for each instead");
WL_FLAG("where", where, "make none, but say where the function is");
static volatile uint64_t sink;

WL_FRAME uint64_t hit(uint64_t number, uint64_t twice)
{
	sink += number;
	return twice;
}

/* Its offset in the file: the file is mapped in parts. */
static uint64_t file_offset_of(uint64_t address)
{
	unsigned long start, end, offset;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[WL_PATH];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    start <= address && address < end) {
			fclose(maps);
			return address - start + offset;
		}
	wl_die(WL_FAILED, "/proc/self/maps does not say where the function is");
}

static int workload(void)
{
	uint64_t missing = 0;
	char byte;

	int zero = must(open("/dev/zero", O_RDONLY | O_CLOEXEC), "/dev/zero");
	if (where)
		count = 0;
	wl_ready();
	uint64_t began = wl_now();
	for (uint64_t i = 0; i < count; i++) {
		if (reads)
			missing += read(zero, &byte, 1) != 1;
		else
			sink += hit(i, 2 * i);
		if (sleep_us)
			usleep((useconds_t)sleep_us);
	}
	began = wl_now() - began;
	if (where)
		wl_u64("offset", file_offset_of((uint64_t)hit));
	return wl_result("hits %lu ns %lu", count - missing, began);
}
