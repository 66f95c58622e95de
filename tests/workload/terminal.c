/* Writes to a terminal of its own a known number of times. The kernel hands each text to its reader
 * by an item of a work queue (flush_to_ldisc). */
#include "workload.h"

#include <pty.h>
#include <termios.h>

WL_NUMBER("writes", writes, 200, "how many");

static int workload(void)
{
	int master, slave;
	uint64_t took = 0;
	struct termios raw = {0};

	cfmakeraw(&raw);
	raw.c_cc[VMIN] = 1;
	can(openpty(&master, &slave, NULL, &raw, NULL), "no terminals here");
	wl_ready();
	for (uint64_t i = 0; i < writes; i++) {
		uint64_t start = wl_now();
		char c = 'x';

		fail_if(write(master, &c, 1) != 1 || read(slave, &c, 1) != 1, "terminal");
		took += wl_now() - start;
	}
	return wl_result("writes %lu took_ns %lu", writes, took);
}
