/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes to a terminal of its own in several ways, and says what; or often the same. */
#include "workload.h"

#include <pty.h>
#include <sys/uio.h>
#include <termios.h>

#define LONG_BYTES 10000

static uint64_t writes;
static int master, slave;
static char slave_path[64], text[LONG_BYTES];

/* The buffer of a terminal without a reader fills up. */
static void *drain(void *unused)
{
	char buffer[4096];

	(void)unused;
	while (read(master, buffer, sizeof(buffer)) > 0)
		;
	return NULL;
}

static void say(pid_t writer, const void *bytes, size_t size, ssize_t written)
{
	if (written != (ssize_t)size)
		wl_die(WL_FAILED, "write: %m");
	wl_open(NULL, '{');
	wl_i64("pid", writer);
	wl_hex("hex", bytes, size);
	wl_close('}');
}

/* A process whose terminal it is writes to it by the name that each has for its own. */
static void by_other_name(void)
{
	static const char words[] = "by another name\n";
	pid_t child = wl_fork();

	if (!child) {
		int own;

		setsid();
		own = open(slave_path, O_RDWR | O_CLOEXEC);
		if (own < 0 || ioctl(own, TIOCSCTTY, 0))
			_exit(1);
		own = open("/dev/tty", O_WRONLY | O_CLOEXEC);
		_exit(write(own, words, sizeof(words) - 1) != sizeof(words) - 1);
	}
	if (wl_reap(child))
		wl_die(WL_CANNOT, "no terminal of a process' own");
	say(child, words, sizeof(words) - 1, sizeof(words) - 1);
}

static void scene(void)
{
	static const char hello[] = "hello\n", control[] = "\033]0;title\007\200\n";
	char one[] = "one ", two[] = "two ", three[] = "three\n";
	const struct iovec parts[] = {{one, 4}, {NULL, 0}, {two, 4}, {three, 6}};
	int other_master, other, file = open("/dev/null", O_WRONLY | O_CLOEXEC);

	say(getpid(), hello, 6, write(slave, hello, 6));
	say(getpid(), "one two three\n", 14, writev(slave, parts, WL_COUNT(parts)));
	for (size_t i = 0; i < LONG_BYTES; i++)
		text[i] = (char)('a' + i % 26);
	say(getpid(), text, LONG_BYTES, write(slave, text, LONG_BYTES));
	say(getpid(), control, sizeof(control) - 1, write(slave, control, sizeof(control) - 1));
	by_other_name();
	if (openpty(&other_master, &other, NULL, NULL, NULL))
		wl_die(WL_CANNOT, "no second terminal: %m");
	(void)!write(other, "elsewhere\n", 10);
	(void)!write(file, "nowhere\n", 8);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"writes", WL_NUM, &writes, "N", "write a line N times, instead of a scene"},
		{0},
	};
	struct termios raw;
	pthread_t reader;

	wl_start(argc, argv, "screen", "Writes to a terminal of its own.", opts);
	memset(&raw, 0, sizeof(raw));
	cfmakeraw(&raw);
	if (openpty(&master, &slave, slave_path, &raw, NULL))
		wl_die(WL_CANNOT, "no terminals here: %m");
	if (pthread_create(&reader, NULL, drain, NULL))
		wl_die(WL_FAILED, "pthread_create");
	wl_ready_begin();
	wl_str("tty", slave_path);
	wl_ready_end();

	wl_line_begin();
	wl_open("scene", '[');
	if (!writes)
		scene();
	wl_close(']');
	for (uint64_t i = 0; i < writes; i++)
		if (write(slave, "a line\n", 7) != 7)
			wl_die(WL_FAILED, "write: %m");
	wl_u64("writes", writes);
	wl_finish();
	return WL_OK;
}
