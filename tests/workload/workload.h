/* Shared by all workloads: options, the ready/hold/linger handshake, JSON on stdout, /proc readers,
 * and undoing changes to the machine on every exit except SIGKILL. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WL_OK = 0, WL_FAILED = 1, WL_USAGE = 2, WL_CANNOT = 77 };

#define WL_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define WL_MIB (UINT64_C(1) << 20)
#define WL_GIB (UINT64_C(1) << 30)
#define WL_NSEC UINT64_C(1000000000)
#define WL_PATH 1024
#define WL_UNSET UINT64_MAX

static char wl_name[64];

enum wl_kind { WL_IS_FLAG, WL_IS_NUMBER, WL_IS_TEXT };

struct wl_opt {
	const char *name;
	enum wl_kind kind;
	void *to;
	const char *help;
	uint64_t least, most;
};

/* Contiguous in a separate section, whose bounds the linker provides. */
#define WL_OPTION(name, type, variable, default, kind, help, ...)                                  \
	static type variable = default;                                                            \
	static const struct wl_opt wl_opt_##variable                                               \
		__attribute__((section("wl_options"), used, aligned(8))) = {name, kind, &variable, \
									    help, __VA_ARGS__}
#define WL_BOUNDED(name, variable, default, least, most, help)                                     \
	WL_OPTION(name, uint64_t, variable, default, WL_IS_NUMBER, help, least, most)
#define WL_NUMBER(name, variable, default, help)                                                   \
	WL_BOUNDED(name, variable, default, 0, UINT64_MAX, help)
#define WL_TEXT(name, variable, default, help)                                                     \
	WL_OPTION(name, const char *, variable, default, WL_IS_TEXT, help, 0, 0)
#define WL_FLAG(name, variable, help) WL_OPTION(name, bool, variable, false, WL_IS_FLAG, help, 0, 0)

extern const struct wl_opt __start_wl_options[], __stop_wl_options[];

WL_TEXT("comm", wl_comm_wanted, NULL, "set comm; \\xNN gives any byte");
WL_FLAG("hold", wl_hold_wanted, "after the ready line wait for a byte or EOF on stdin");
WL_FLAG("linger", wl_linger_wanted, "wait so again before the end");
WL_BOUNDED("timeout", wl_timeout_s, 120, 1, 3600, "end with status 1 after so many seconds");

/* ---- exits ---- */

static inline __attribute__((noreturn, format(printf, 2, 3))) void wl_die(int status,
									  const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s: ", wl_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(status);
}

/* Each ends the program if a call failed, with the message of errno. */
static inline __attribute__((always_inline)) void fail_if(bool bad, const char *what)
{
	if (bad)
		wl_die(WL_FAILED, "%s: %m", what);
}

static inline __attribute__((always_inline)) void check(bool fine, const char *what)
{
	fail_if(!fine, what);
}

static inline __attribute__((always_inline)) void cannot_if(bool bad, const char *what)
{
	if (bad)
		wl_die(WL_CANNOT, "%s: %m", what);
}

/* The machine lacks something; errno has no message for it. */
static inline __attribute__((always_inline)) void lacks_if(bool lacking, const char *what)
{
	if (lacking)
		wl_die(WL_CANNOT, "%s", what);
}

static inline __attribute__((always_inline)) void usage_if(bool bad, const char *what)
{
	if (bad)
		wl_die(WL_USAGE, "%s", what);
}

/* Fails if a call's result is negative; returns it. */
static inline __attribute__((always_inline)) int must(long result, const char *what)
{
	fail_if(result < 0, what);
	return (int)result;
}

static inline __attribute__((always_inline)) int can(long result, const char *what)
{
	cannot_if(result < 0, what);
	return (int)result;
}

/* Valid until the same thread's fourth call after this one. */
static inline __attribute__((format(printf, 1, 2))) const char *wl_format(const char *format, ...)
{
	static __thread char texts[4][6 * WL_PATH];
	static __thread unsigned int next;
	char *text = texts[next++ % WL_COUNT(texts)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(texts[0]), format, args);
	va_end(args);
	return text;
}

enum wl_undo_kind {
	WL_UNDO_UNLINK,
	WL_UNDO_RMDIR,
	WL_UNDO_WRITE,
	WL_UNDO_KILL,
	WL_UNDO_CLOSE,
	WL_UNDO_CLOSE_ON, /* all files on a device */
	WL_UNDO_LOOP,
	WL_UNDO_UMOUNT,
	WL_UNDO_UMOUNT_WHOLE, /* while its server still runs */
	WL_UNDO_RMMOD,
	WL_UNDO_IDLE,
	WL_UNDO_SWAPOFF,
};

struct wl_undo {
	enum wl_undo_kind kind;
	int number;
	char path[WL_PATH];
	char value[64];
};

static struct wl_undo wl_undos[1100];
static volatile sig_atomic_t wl_undo_count;

/* Also runs in signal handlers: system calls only. */
static inline void wl_undo_all(void)
{
	while (wl_undo_count > 0) {
		struct wl_undo *u = &wl_undos[--wl_undo_count];
		struct timespec pause = {.tv_nsec = 20000000};
		struct sched_param normal = {0};
		struct stat status;
		int fd;

		switch (u->kind) {
		case WL_UNDO_UNLINK:
			unlink(u->path);
			break;
		case WL_UNDO_RMDIR:
			/* A cgroup stays busy for a moment after its last process. */
			for (int i = 0; i < 100 && rmdir(u->path) && errno == EBUSY; i++)
				nanosleep(&pause, NULL);
			break;
		case WL_UNDO_WRITE:
			fd = open(u->path, O_WRONLY | O_CLOEXEC);
			if (fd >= 0) {
				if (write(fd, u->value, strlen(u->value)) < 0) {
					static const char what[] = "workload: not restored: ";

					(void)!write(2, what, sizeof(what) - 1);
					(void)!write(2, u->path, strlen(u->path));
					(void)!write(2, "\n", 1);
				}
				close(fd);
			}
			break;
		case WL_UNDO_KILL:
			if (kill(u->number, SIGKILL) == 0)
				waitpid(u->number, NULL, 0);
			break;
		case WL_UNDO_CLOSE:
			close(u->number);
			break;
		case WL_UNDO_CLOSE_ON:
			for (fd = 3; fd < 256; fd++)
				if (!fstat(fd, &status) && status.st_dev == (dev_t)u->number)
					close(fd);
			break;
		case WL_UNDO_LOOP:
			ioctl(u->number, LOOP_CLR_FD, 0);
			close(u->number);
			break;
		case WL_UNDO_UMOUNT:
			umount2(u->path, MNT_DETACH);
			break;
		case WL_UNDO_UMOUNT_WHOLE:
			for (int i = 0; i < 250 && umount2(u->path, 0) && errno == EBUSY; i++)
				nanosleep(&pause, NULL);
			/* No effect if that succeeded. */
			umount2(u->path, MNT_FORCE | MNT_DETACH);
			break;
		case WL_UNDO_RMMOD:
			syscall(SYS_delete_module, u->path, O_NONBLOCK);
			break;
		case WL_UNDO_IDLE:
			sched_setscheduler(u->number, SCHED_OTHER, &normal);
			break;
		case WL_UNDO_SWAPOFF:
			swapoff(u->path);
			break;
		}
	}
}

/* Register before the change is made, so that a signal between them is harmless. */
static inline void wl_undo(enum wl_undo_kind kind, int number, const char *path, const char *value)
{
	struct wl_undo *u = &wl_undos[wl_undo_count];

	check((size_t)wl_undo_count < WL_COUNT(wl_undos), "changes to undo");
	u->kind = kind;
	u->number = number;
	snprintf(u->path, sizeof(u->path), "%s", path ? path : "");
	snprintf(u->value, sizeof(u->value), "%s", value ? value : "");
	wl_undo_count = wl_undo_count + 1;
}

static inline void wl_on_signal(int number)
{
	static const char late[] = ": took longer than --timeout\n";

	wl_undo_all();
	if (number == SIGALRM) {
		(void)!write(2, wl_name, strlen(wl_name));
		(void)!write(2, late, sizeof(late) - 1);
	}
	_exit(WL_FAILED);
}

/* The child owns none of its parent's changes, and never outlives it. */
static inline pid_t wl_fork(void)
{
	pid_t pid, parent = getpid();
	sigset_t all, old;

	fflush(stdout);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	pid = fork();
	if (pid == 0) {
		wl_undo_count = 0;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(WL_FAILED);
		alarm(wl_timeout_s);
	} else if (pid > 0) {
		wl_undo(WL_UNDO_KILL, pid, NULL, NULL);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return must(pid, "fork");
}

/* Waits for a child of wl_fork() and forgets it, so that its reused id is not killed. */
static inline int wl_reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		check(errno == EINTR, "waitpid");
	for (int i = 0; i < wl_undo_count; i++)
		if (wl_undos[i].kind == WL_UNDO_KILL && wl_undos[i].number == pid) {
			memmove(&wl_undos[i], &wl_undos[i + 1],
				(wl_undo_count - i - 1) * sizeof(wl_undos[0]));
			wl_undo_count = wl_undo_count - 1;
			break;
		}
	return status;
}

/* ---- JSON ---- */

static bool wl_comma, wl_in_line;

static inline void wl_line_begin(void);

static inline void wl_key(const char *key)
{
	if (!wl_in_line)
		wl_line_begin();
	if (wl_comma)
		putchar(',');
	if (key)
		printf("\"%s\":", key);
	wl_comma = true;
}

static inline void wl_open(const char *key, char bracket)
{
	wl_key(key);
	putchar(bracket);
	wl_comma = false;
}

static inline void wl_close(char bracket)
{
	putchar(bracket);
	wl_comma = true;
}

static inline void wl_u64(const char *key, uint64_t value)
{
	wl_key(key);
	printf("%llu", (unsigned long long)value);
}

static inline void wl_i64(const char *key, int64_t value)
{
	wl_key(key);
	printf("%lld", (long long)value);
}

static inline void wl_bool(const char *key, bool value)
{
	wl_key(key);
	fputs(value ? "true" : "false", stdout);
}

/* Bytes above ASCII become the code point of that number: valid JSON for any bytes. */
static inline void wl_str(const char *key, const char *text)
{
	wl_key(key);
	putchar('"');
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p == '"' || *p == '\\')
			printf("\\%c", *p);
		else if (*p < 0x20 || *p >= 0x7f)
			printf("\\u%04x", *p);
		else
			putchar(*p);
	}
	putchar('"');
}

static inline pid_t wl_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* Called by the first key, or at the end. */
static inline void wl_line_begin(void)
{
	wl_in_line = true;
	wl_comma = false;
	wl_open(NULL, '{');
	wl_str("workload", wl_name);
	wl_i64("pid", getpid());
	wl_i64("tid", wl_tid());
}

static inline void wl_hex(const char *key, const void *bytes, size_t size)
{
	wl_key(key);
	putchar('"');
	for (size_t i = 0; i < size; i++)
		printf("%02x", ((const unsigned char *)bytes)[i]);
	putchar('"');
}

/* With a printf() format, "pid %d slept_ns %lu name %s denied %i path_hex %p": a key before each
 * type, %i for true or false, %p for the bytes of a text. */
static inline __attribute__((format(printf, 1, 2))) void wl_fields(const char *at, ...)
{
	va_list args;

	va_start(args, at);
	while (*at) {
		int size = (int)strcspn(at, " ");
		const char *type = at + size + 2, *text;
		char key[64];

		snprintf(key, sizeof(key), "%.*s", size, at);
		if (*type == 'l' && type[1] == 'u') {
			wl_u64(key, va_arg(args, uint64_t));
		} else if (*type == 'l') {
			wl_i64(key, va_arg(args, int64_t));
		} else if (*type == 'u') {
			wl_u64(key, va_arg(args, unsigned int));
		} else if (*type == 'd') {
			wl_i64(key, va_arg(args, int));
		} else if (*type == 'i') {
			wl_bool(key, va_arg(args, int));
		} else {
			text = va_arg(args, const char *);
			*type == 's' ? wl_str(key, text) : wl_hex(key, text, strlen(text));
		}
		at = type + strcspn(type, " ");
		at += *at == ' ';
	}
	va_end(args);
}

#define wl_object(key, ...) (wl_open(key, '{'), wl_fields(__VA_ARGS__), wl_close('}'))

/* Members of array elements of STRIDE bytes, for example of threads. */
static inline void wl_pids(const char *key, const void *first, size_t count, size_t stride)
{
	wl_open(key, '[');
	for (size_t i = 0; i < count; i++)
		wl_i64(NULL, *(const pid_t *)((const char *)first + i * stride));
	wl_close(']');
}

static inline void wl_line_end(void)
{
	wl_in_line = false;
	puts("}");
	must(fflush(stdout), "stdout");
}

/* ---- handshake ---- */

static inline void wl_await_stdin(void)
{
	char byte;

	while (read(0, &byte, 1) < 0 && errno == EINTR)
		;
}

/* Ends the line of the preceding values. */
static inline void wl_ready(void)
{
	wl_bool("ready", true);
	wl_line_end();
	if (wl_hold_wanted)
		wl_await_stdin();
}

static inline void wl_finish(void)
{
	if (!wl_in_line)
		wl_line_begin();
	wl_line_end();
	if (wl_linger_wanted)
		wl_await_stdin();
}

static inline int wl_well_done(void)
{
	wl_finish();
	return WL_OK;
}

#define wl_ready_with(...) (wl_fields(__VA_ARGS__), wl_ready())
/* The last values, in the last line. */
#define wl_result(...) (wl_fields(__VA_ARGS__), wl_well_done())

/* ---- threads, pipes and memory ---- */

static inline pthread_t wl_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, run, arg);

	if (error)
		wl_die(WL_FAILED, "cannot make a thread: %s", strerror(error));
	return thread;
}

/* Starts this many, each with its element of STRIDE bytes, and waits until all have ended. */
static inline void wl_threads(size_t count, void *(*run)(void *), void *first, size_t stride)
{
	pthread_t all[count + 1];

	for (size_t i = 0; i < count; i++)
		all[i] = wl_thread(run, (char *)first + i * stride);
	for (size_t i = 0; i < count; i++)
		pthread_join(all[i], NULL);
}

/* Threads that start together; glibc's semaphores may be initialised with zeros. */
static __attribute__((unused)) sem_t wl_arrived, wl_gate;

static inline void wl_wait(sem_t *s, size_t times)
{
	while (times)
		times -= !sem_wait(s);
}

static inline void wl_post(sem_t *s, size_t times)
{
	while (times--)
		sem_post(s);
}

static inline void wl_arrive(volatile pid_t *tid)
{
	*tid = wl_tid();
	sem_post(&wl_arrived);
}

static inline void wl_pipe(int ends[2])
{
	check(!pipe2(ends, O_CLOEXEC), "pipe");
}

static inline void wl_tell(const int ends[2])
{
	check(write(ends[1], "x", 1) == 1, "pipe");
}

static inline void wl_hear(const int ends[2])
{
	char byte;

	while (read(ends[0], &byte, 1) != 1)
		check(errno == EINTR, "pipe");
}

static inline void *wl_map(size_t bytes, int flags, int fd)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (at == MAP_FAILED)
		wl_die(errno == ENOMEM ? WL_CANNOT : WL_FAILED, "mmap: %m");
	return at;
}

static inline void *wl_anonymous(size_t bytes)
{
	return wl_map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* Shared also with processes that are forked afterwards. */
static inline void *wl_shared(size_t bytes)
{
	return wl_map(bytes, MAP_SHARED | MAP_ANONYMOUS, -1);
}

/* ---- options ---- */

/* Turns \xNN and \\ into bytes; returns the length. A NUL is an error. */
static inline size_t wl_unescape(const char *from, char *to, size_t room)
{
	size_t n = 0;

	for (; *from && n + 1 < room; from++) {
		unsigned int byte = (unsigned char)*from;

		if (*from == '\\' && from[1] == 'x') {
			int used = 0;

			if (sscanf(from + 2, "%2x%n", &byte, &used) != 1 || used != 2 || !byte)
				wl_die(WL_USAGE, "want \\x and two hexadecimal digits, not 00: %s",
				       from);
			from += 3;
		} else if (*from == '\\' && from[1] == '\\') {
			from++;
		}
		to[n++] = (char)byte;
	}
	to[n] = '\0';
	return n;
}

static inline uint64_t wl_number(const char *name, const char *text)
{
	char *end;

	errno = 0;
	unsigned long long value = strtoull(text, &end, 0);
	if (end == text || *text == '-' || errno)
		wl_die(WL_USAGE, "--%s: not a number: %s", name, text);
	if (*end && !end[1]) {
		const char *units = "kmg", *unit = strchr(units, *end | 0x20);

		if (unit) {
			value <<= 10 * (unit - units + 1);
			end++;
		}
	}
	if (*end)
		wl_die(WL_USAGE, "--%s: not a number: %s", name, text);
	return value;
}

static inline __attribute__((noreturn)) void wl_help(void)
{
	printf("usage: %s [OPTION...]\n\n", wl_name);
	for (const struct wl_opt *o = __start_wl_options; o < __stop_wl_options; o++) {
		printf("  --%-18s %s", o->name, o->help);
		if (o->kind == WL_IS_NUMBER && *(uint64_t *)o->to && *(uint64_t *)o->to != WL_UNSET)
			printf(" (%lu)", *(uint64_t *)o->to);
		else if (o->kind == WL_IS_TEXT && *(const char **)o->to)
			printf(" (%s)", *(const char **)o->to);
		putchar('\n');
	}
	puts("\nstatus: 0 events made, 77 this machine cannot, 1 failed, 2 usage");
	exit(WL_OK);
}

static inline const struct wl_opt *wl_find(const char *name, size_t size)
{
	for (const struct wl_opt *o = __start_wl_options; o < __stop_wl_options; o++)
		if (strlen(o->name) == size && !memcmp(o->name, name, size))
			return o;
	wl_die(WL_USAGE, "unknown option: --%s (try --help)", name);
}

/* The compiled file has the workload's name. */
static inline void wl_start(int argc, char **argv)
{
	static char room[1 << 16];

	/* Output is written in one piece: a tool's lines may go into the same pipe. */
	setvbuf(stdout, room, _IOFBF, sizeof(room));
	struct sigaction action = {.sa_handler = wl_on_signal};
	const char *slash = strrchr(__BASE_FILE__, '/'), *file = slash ? slash + 1 : __BASE_FILE__;

	snprintf(wl_name, sizeof(wl_name), "%.*s", (int)strcspn(file, "."), file);
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];

		if (!strcmp(arg, "--help") || !strcmp(arg, "-h"))
			wl_help();
		if (strncmp(arg, "--", 2))
			wl_die(WL_USAGE, "not an option: %s (try --help)", arg);
		size_t size = strcspn(arg + 2, "=");
		const char *value = arg[2 + size] ? arg + 3 + size : NULL;
		const struct wl_opt *opt = wl_find(arg + 2, size);
		if (opt->kind == WL_IS_FLAG) {
			usage_if(value, "a flag takes no value");
			*(bool *)opt->to = true;
			continue;
		}
		if (!value && ++i < argc)
			value = argv[i];
		if (!value)
			wl_die(WL_USAGE, "--%s needs a value", opt->name);
		if (opt->kind == WL_IS_TEXT) {
			*(const char **)opt->to = value;
			continue;
		}
		uint64_t number = wl_number(opt->name, value);
		if (number < opt->least || number > opt->most)
			wl_die(WL_USAGE, "--%s: want %lu to %lu", opt->name, opt->least, opt->most);
		*(uint64_t *)opt->to = number;
	}
	if (wl_comm_wanted) {
		char comm[64];

		wl_unescape(wl_comm_wanted, comm, sizeof(comm));
		prctl(PR_SET_NAME, comm);
	}
	sigfillset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	/* A closed pipe must not stop the undoing: writes fail instead. */
	signal(SIGPIPE, SIG_IGN);
	atexit(wl_undo_all);
	alarm(wl_timeout_s);
}

/* One of a list of words separated by spaces. */
static inline void wl_one_of(const char *option, const char *value, const char *words)
{
	const char *at = strstr(wl_format(" %s ", words), wl_format(" %s ", value));

	if (!at || !*value)
		wl_die(WL_USAGE, "--%s: want one of %s", option, words);
}

/* ---- clock and files ---- */

static inline uint64_t wl_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * WL_NSEC + (uint64_t)t.tv_nsec;
}

static inline uint64_t wl_now(void)
{
	return wl_clock(CLOCK_MONOTONIC);
}

static inline struct timespec wl_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / WL_NSEC), .tv_nsec = (long)(ns % WL_NSEC)};
}

static inline void wl_nap_ms(uint64_t ms)
{
	struct timespec t = wl_timespec(ms * 1000000);

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* A whole small file as text; the length, or -1. */
static inline ssize_t wl_slurp(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;
	size_t n = 0;

	if (fd < 0)
		return -1;
	while (n + 1 < room && (got = read(fd, text + n, room - 1 - n)) > 0)
		n += (size_t)got;
	close(fd);
	text[n] = '\0';
	return (ssize_t)n;
}

static inline bool wl_write_file(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);

	return (fd < 0 || !close(fd)) && ok;
}

/* The same, for a control that this kernel may lack. */
static inline void wl_set(const char *path, const char *value)
{
	cannot_if(!wl_write_file(path, value), path);
}

/* The previous value is restored at the end. */
static inline bool wl_tune(const char *path, const char *value)
{
	char before[64];

	if (wl_slurp(path, before, sizeof(before)) < 0)
		return false;
	wl_undo(WL_UNDO_WRITE, 0, path, before);
	return wl_write_file(path, value);
}

/* The number at the start of a small file; 0 if there is none. */
static inline uint64_t wl_number_in(const char *path)
{
	char text[64];

	return wl_slurp(path, text, sizeof(text)) < 0 ? 0 : strtoull(text, NULL, 10);
}

/* The number after KEY at the start of a line of a "KEY VALUE" file; a key that ends in '*' is a
 * sum. */
static inline bool wl_lookup(const char *text, const char *key, uint64_t *value)
{
	size_t size = strlen(key);
	bool any = size && key[size - 1] == '*', found = false;

	if (any)
		size--;
	*value = 0;
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, size))
			continue;
		if (!any && line[size] != ' ' && line[size] != ':' && line[size] != '\t')
			continue;
		*value += strtoull(line + strcspn(line, ": \t") + 1, NULL, 10);
		found = true;
		if (!any)
			break;
	}
	return found;
}

static inline uint64_t wl_meminfo(const char *key)
{
	char text[8192];
	uint64_t kib = 0;

	wl_slurp("/proc/meminfo", text, sizeof(text));
	wl_lookup(text, key, &kib);
	return kib << 10;
}

/* Of /proc/vmstat. */
struct wl_counters {
	const char *const *keys;
	size_t count;
	uint64_t value[24];
	bool known[24];
};

static inline struct wl_counters wl_count(const char *const *keys, size_t count)
{
	static __thread char text[32768];
	struct wl_counters c = {.keys = keys, .count = count};

	if (wl_slurp("/proc/vmstat", text, sizeof(text)) < 0)
		text[0] = '\0';
	for (size_t i = 0; i < count; i++)
		c.known[i] = wl_lookup(text, keys[i], &c.value[i]);
	return c;
}

static inline uint64_t wl_vmstat(const char *key)
{
	return wl_count(&key, 1).value[0];
}

static inline struct wl_counters wl_grown(const struct wl_counters *before)
{
	struct wl_counters c = wl_count(before->keys, before->count);

	for (size_t i = 0; i < c.count; i++)
		c.value[i] -= before->value[i];
	return c;
}

/* Counters that this kernel lacks are omitted, not shown as 0. */
static inline void wl_growth(const struct wl_counters *grown)
{
	wl_open("vmstat", '{');
	for (size_t i = 0; i < grown->count; i++) {
		size_t size = strcspn(grown->keys[i], "*");

		size -= size && grown->keys[i][size - 1] == '_';
		if (grown->known[i])
			wl_i64(wl_format("%.*s", (int)size, grown->keys[i]),
			       (int64_t)grown->value[i]);
	}
	wl_close('}');
}

static inline const char *wl_of_thread(pid_t tid, const char *file, char *text, size_t room)
{
	const char *path = wl_format("/proc/self/task/%d/%s", tid, file);

	fail_if(wl_slurp(path, text, room) < 0, path);
	return text;
}

/* As the kernel shows it: R, S, D, ... */
static inline char wl_state_of(pid_t tid)
{
	char text[512];
	const char *state = strrchr(wl_of_thread(tid, "stat", text, sizeof(text)), ')');

	return state ? state[2] : '?';
}

struct wl_switches {
	uint64_t voluntary, nonvoluntary;
};

static inline struct wl_switches wl_switches_of(pid_t tid)
{
	struct wl_switches s = {0};
	char text[4096];

	wl_of_thread(tid, "status", text, sizeof(text));
	wl_lookup(text, "voluntary_ctxt_switches", &s.voluntary);
	wl_lookup(text, "nonvoluntary_ctxt_switches", &s.nonvoluntary);
	return s;
}

static inline struct wl_switches wl_switches_since(struct wl_switches before, pid_t tid)
{
	struct wl_switches s = wl_switches_of(tid);

	return (struct wl_switches){s.voluntary - before.voluntary,
				    s.nonvoluntary - before.nonvoluntary};
}

static inline void wl_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	cannot_if(sched_setaffinity(0, sizeof(set), &set), wl_format("CPU %d", cpu));
}

/* ---- directories for files ---- */

/* On tmpfs, ramfs or overlay: the upper layer of an overlay is unknown, in a guest it is tmpfs. */
static inline bool wl_keeps_files_in_memory(const char *dir)
{
	struct statfs fs;

	if (statfs(dir, &fs))
		return true;
	return fs.f_type == 0x01021994 || fs.f_type == 0x858458f6 || fs.f_type == 0x794c7630;
}

/* The given directory, or the first usual one whose page cache can be dropped. */
static inline const char *wl_disk_dir(const char *wanted)
{
	static const char *const usual[] = {"/mnt/disk", "/var/tmp", "/tmp", "/root", "."};

	if (wanted) {
		must(access(wanted, W_OK), wanted);
		lacks_if(wl_keeps_files_in_memory(wanted), "its files live in memory");
		return wanted;
	}
	for (size_t i = 0; i < WL_COUNT(usual); i++)
		if (!access(usual[i], W_OK) && !wl_keeps_files_in_memory(usual[i]))
			return usual[i];
	wl_die(WL_CANNOT, "no directory on a disk found (give --dir)");
}

/* A directory in memory, with a path without symbolic links. */
static inline const char *wl_memory_dir(void)
{
	return access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
}

/* PATH has WL_PATH bytes, here and elsewhere. */
static inline int wl_temp_file(const char *dir, int flags, char *path)
{
	static unsigned int serial;

	if (snprintf(path, WL_PATH, "%s/workload-%s-%d-%u", dir, wl_name, getpid(), serial++) >=
	    WL_PATH)
		wl_die(WL_USAGE, "%s: too long", dir);
	wl_undo(WL_UNDO_UNLINK, 0, path, NULL);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0600);
	if (fd < 0)
		wl_die(errno == EINVAL || errno == EROFS ? WL_CANNOT : WL_FAILED, "%s: %m", path);
	return fd;
}

/* Pages of a file in the page cache, by mincore(); mapping alone reads none. */
static inline uint64_t wl_resident(int fd, uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages = (size + page - 1) / page;
	unsigned char *map = malloc(pages);
	void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	uint64_t found = 0;

	fail_if(!map || at == MAP_FAILED || mincore(at, size, map), "mincore");
	for (uint64_t i = 0; i < pages; i++)
		found += map[i] & 1;
	munmap(at, size);
	free(map);
	return found;
}

/* Valid as long as the text of wl_format(). */
static inline const char *wl_at(const char *dir, const char *name)
{
	return wl_format("%s/%s", dir, name);
}

/* Permanently valid. */
static inline const char *wl_in(const char *dir, const char *name)
{
	return strdup(wl_at(dir, name));
}

/* Text in memory that is not present before it is read. */
static inline char *wl_late_text(const char *text)
{
	char path[WL_PATH];
	int fd = wl_temp_file(wl_memory_dir(), 0, path);

	must(write(fd, text, strlen(text) + 1), path);
	char *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	check(at != MAP_FAILED, "mmap");
	close(fd);
	return at;
}

static inline const char *wl_make_dir(const char *parent)
{
	static char path[WL_PATH];

	snprintf(path, sizeof(path), "%s/%s-%d", parent, wl_name, getpid());
	wl_undo(WL_UNDO_RMDIR, 0, path, NULL);
	must(mkdir(path, 0700), path);
	return path;
}

static inline int wl_new_file(const char *path)
{
	wl_undo(WL_UNDO_UNLINK, 0, path, NULL);
	return must(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), path);
}

static inline const char *wl_self(void)
{
	static char path[WL_PATH];

	must(readlink("/proc/self/exe", path, sizeof(path) - 1), "/proc/self/exe");
	return path;
}

/* A program under another name, by a link in a new directory. */
static inline const char *wl_alias(const char *program, const char *dir, const char *name)
{
	static char link[WL_PATH];
	const char *own = wl_format("%s/workload-alias-%d", dir, getpid());

	usage_if(snprintf(link, sizeof(link), "%s/%s", own, name) >= WL_PATH, "too long a name");
	wl_undo(WL_UNDO_RMDIR, 0, own, NULL);
	wl_undo(WL_UNDO_UNLINK, 0, link, NULL);
	fail_if(mkdir(own, 0755) || symlink(program, link), own);
	return link;
}

static inline bool wl_copy(int from, int to)
{
	static char bytes[1 << 20];
	ssize_t n;

	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)n) != n)
			return false;
	return !n;
}

static inline void wl_modprobe(const char *module, const char *parameter)
{
	pid_t pid = wl_fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 1);
		dup2(null, 2);
		execlp("modprobe", "modprobe", module, parameter, (char *)NULL);
		execl("/sbin/modprobe", "modprobe", module, parameter, (char *)NULL);
		_exit(127);
	}
	wl_reap(pid);
}

/* ---- the known call chain ---- */

#if defined(__GNUC__) && !defined(__clang__)
#define WL_FRAME __attribute__((noinline, noipa, used))
#else
#define WL_FRAME __attribute__((noinline, used))
#endif

/* Even with -fno-omit-frame-pointer gcc gives a leaf function without stack use no frame. */
#define WL_KEEP_FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)))

/* The C library has no frame pointers: a call into it would hide its caller from a stack walk. */
static inline __attribute__((always_inline)) long wl_syscall3(long nr, long a, long b, long c)
{
#if defined(__x86_64__)
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
#else
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#endif
}

WL_FRAME void workload_sleep(uint64_t ns)
{
	struct timespec t = wl_timespec(ns);

	WL_KEEP_FRAME();
	while (wl_syscall3(SYS_nanosleep, (long)&t, (long)&t, 0) == -EINTR)
		;
}

WL_FRAME void workload_read_pipe(int fd)
{
	char byte;

	WL_KEEP_FRAME();
	while (wl_syscall3(SYS_read, fd, (long)&byte, 1) == -EINTR)
		;
}

WL_FRAME void workload_middle(int fd, uint64_t ns)
{
	if (fd >= 0)
		workload_read_pipe(fd);
	else
		workload_sleep(ns);
	__asm__ volatile("");
}

/* Blocks once, on FD if there is one, otherwise for NS; returns the nanoseconds it took. */
WL_FRAME uint64_t workload_outer(int fd, uint64_t ns)
{
	uint64_t start = wl_now();

	workload_middle(fd, ns);
	return wl_now() - start;
}

WL_FRAME void workload_wake(int fd)
{
	WL_KEEP_FRAME();
	while (wl_syscall3(SYS_write, fd, (long)"x", 1) == -EINTR)
		;
}

WL_FRAME void workload_spin(uint64_t ns)
{
	uint64_t end = wl_now() + ns;
	volatile unsigned int work = 0;

	while (wl_now() < end)
		for (int i = 0; i < 1000; i++)
			work = work + 1;
}

/* Called by the main() here, and inlined: call chains have no function of that name. */
#ifndef WL_OWN_MAIN
static inline __attribute__((always_inline)) int workload(void);

int main(int argc, char **argv)
{
	wl_start(argc, argv);
	return workload();
}
#endif

#endif
