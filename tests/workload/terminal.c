/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes to a terminal of its own a known number of times. The kernel hands each text to its reader
 * by an item of a work queue (flush_to_ldisc). */
#include "workload.h"

#include <pty.h>
#include <termios.h>

static uint64_t writes = 200;

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"writes", WL_NUM, &writes, "N", "how many"},
		{0},
	};
	int master, slave;
	uint64_t took = 0;
	struct termios raw;

	wl_start(argc, argv, "terminal", "Writes to a terminal N times.", opts);
	memset(&raw, 0, sizeof(raw));
	cfmakeraw(&raw);
	raw.c_cc[VMIN] = 1;
	if (openpty(&master, &slave, NULL, &raw, NULL))
		wl_die(WL_CANNOT, "no terminals here: %m");

	wl_ready_begin();
	wl_ready_end();

	for (uint64_t i = 0; i < writes; i++) {
		uint64_t start = wl_now();
		char c = 'x';

		if (write(master, &c, 1) != 1 || read(slave, &c, 1) != 1)
			wl_die(WL_FAILED, "terminal: %m");
		took += wl_now() - start;
	}

	wl_line_begin();
	wl_u64("writes", writes);
	wl_u64("took_ns", took);
	wl_finish();
	return WL_OK;
}
