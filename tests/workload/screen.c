/* Writes to a private terminal in several ways, and prints the bytes; or often the same. */
#include "workload.h"

#include <pty.h>
#include <sys/uio.h>
#include <termios.h>

#define LONG_BYTES 10000

WL_NUMBER("writes", writes, 0, "write a line N times, instead of a scene");
WL_NUMBER("typed", typed, 0,
	  "instead: N texts for its reader, handed over by a work queue (flush_to_ldisc)");
static int master, slave;
static char slave_path[64], text[LONG_BYTES];

/* The buffer of a terminal without a reader would fill up. */
static void *drain(void *unused)
{
	char buffer[4096];

	while (read(master, buffer, sizeof(buffer)) > 0)
		;
	return unused;
}

static void say(pid_t writer, const void *bytes, size_t size, ssize_t written)
{
	fail_if(written != (ssize_t)size, "write");
	wl_open(NULL, '{');
	wl_i64("pid", writer);
	wl_hex("hex", bytes, size);
	wl_close('}');
}

/* A process writes to its controlling terminal by the name /dev/tty. */
static void by_other_name(void)
{
	static const char words[] = "by another name\n";
	pid_t child = wl_fork();

	if (!child) {
		setsid();
		int own = open(slave_path, O_RDWR | O_CLOEXEC);
		if (own < 0 || ioctl(own, TIOCSCTTY, 0))
			_exit(1);
		own = open("/dev/tty", O_WRONLY | O_CLOEXEC);
		_exit(write(own, words, sizeof(words) - 1) != sizeof(words) - 1);
	}
	cannot_if(wl_reap(child), "a terminal of a process' own");
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
	cannot_if(openpty(&other_master, &other, NULL, NULL, NULL), "no second terminal");
	(void)!write(other, "elsewhere\n", 10);
	(void)!write(file, "nowhere\n", 8);
}

static int type_all(void)
{
	uint64_t start;
	char c = 'x';

	wl_ready();
	start = wl_now();
	for (uint64_t i = 0; i < typed; i++)
		fail_if(write(master, &c, 1) != 1 || read(slave, &c, 1) != 1, "terminal");
	return wl_result("typed %lu took_ns %lu", typed, wl_now() - start);
}

static int workload(void)
{
	struct termios raw = {0};

	cfmakeraw(&raw);
	raw.c_cc[VMIN] = 1;
	can(openpty(&master, &slave, slave_path, &raw, NULL), "no terminals here");
	if (typed)
		return type_all();
	wl_thread(drain, NULL);
	wl_ready_with("tty %s", slave_path);
	wl_open("scene", '[');
	if (!writes)
		scene();
	wl_close(']');
	for (uint64_t i = 0; i < writes; i++)
		fail_if(write(slave, "a line\n", 7) != 7, "write");
	return wl_result("writes %lu", writes);
}
