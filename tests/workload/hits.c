/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls one function of its own, or one of the kernel, many times in a row. */
#include "workload.h"

static uint64_t count = 100, sleep_us;
static bool reads, where;
static volatile uint64_t sink;

WL_FRAME uint64_t hit(uint64_t number, uint64_t twice)
{
	sink += number;
	return twice;
}

/* Where it is in this file: the file is mapped in parts. */
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

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"count", WL_NUM, &count, "N", "how many calls"},
		{"sleep-us", WL_NUM, &sleep_us, "US", "rest so long after each"},
		{"reads", WL_FLAG, &reads, NULL, "read a byte of /dev/zero for each instead"},
		{"where", WL_FLAG, &where, NULL, "make none, but say where the function is"},
		{0},
	};
	uint64_t began, missing = 0;
	int zero;
	char byte;

	wl_start(argc, argv, "hits", "Calls a function many times in a row.", opts);
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (zero < 0)
		wl_die(WL_FAILED, "/dev/zero: %m");
	if (where)
		count = 0;
	wl_ready();
	began = wl_now();
	for (uint64_t i = 0; i < count; i++) {
		if (reads)
			missing += read(zero, &byte, 1) != 1;
		else
			sink += hit(i, 2 * i);
		if (sleep_us)
			usleep((useconds_t)sleep_us);
	}
	began = wl_now() - began;
	wl_line_begin();
	wl_u64("hits", count - missing);
	wl_u64("ns", began);
	if (where)
		wl_u64("offset", file_offset_of((uint64_t)hit));
	wl_finish();
	return WL_OK;
}
