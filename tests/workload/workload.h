/* What all workloads share: options, the ready/hold/linger handshake, JSON on stdout,
 * /proc readers, and undoing changes to the machine on every way out but SIGKILL. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
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

static const char *wl_name = "workload";
static bool wl_hold_wanted, wl_linger_wanted;
static uint64_t wl_timeout_s = 120;

/* ---- ways out ---- */

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

enum wl_undo_kind {
	WL_UNDO_UNLINK,
	WL_UNDO_RMDIR,
	WL_UNDO_WRITE,
	WL_UNDO_KILL,
	WL_UNDO_CLOSE,
	WL_UNDO_CLOSE_ON, /* all files on a device */
	WL_UNDO_LOOP,
	WL_UNDO_UMOUNT,
	WL_UNDO_UMOUNT_WHOLE, /* while what serves it is there */
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

/* Runs in signal handlers too: system calls only. */
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
			/* Nothing is left where that went well. */
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

/* Register before the change is made, so that no signal falls in between. */
static inline void wl_undo(enum wl_undo_kind kind, int number, const char *path, const char *value)
{
	struct wl_undo *u = &wl_undos[wl_undo_count];

	if ((size_t)wl_undo_count >= WL_COUNT(wl_undos))
		wl_die(WL_FAILED, "too many changes to undo");
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
	if (pid < 0)
		wl_die(WL_FAILED, "fork: %m");
	return pid;
}

/* Waits for a child of wl_fork() and forgets it, so that its reused id is not killed. */
static inline int wl_reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			wl_die(WL_FAILED, "waitpid: %m");
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

static bool wl_comma;

static inline void wl_key(const char *key)
{
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

static inline void wl_hex(const char *key, const void *bytes, size_t size)
{
	wl_key(key);
	putchar('"');
	for (size_t i = 0; i < size; i++)
		printf("%02x", ((const unsigned char *)bytes)[i]);
	putchar('"');
}

static inline pid_t wl_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static inline void wl_line_begin(void)
{
	wl_comma = false;
	wl_open(NULL, '{');
	wl_str("workload", wl_name);
	wl_i64("pid", getpid());
	wl_i64("tid", wl_tid());
}

static inline void wl_line_end(void)
{
	puts("}");
	if (fflush(stdout))
		wl_die(WL_FAILED, "stdout: %m");
}

/* ---- handshake ---- */

static inline void wl_await_stdin(void)
{
	char byte;

	while (read(0, &byte, 1) < 0 && errno == EINTR)
		;
}

/* Between these two a workload adds fields to its ready line. */
static inline void wl_ready_begin(void)
{
	wl_line_begin();
	wl_bool("ready", true);
}

static inline void wl_ready_end(void)
{
	wl_line_end();
	if (wl_hold_wanted)
		wl_await_stdin();
}

static inline void wl_ready(void)
{
	wl_ready_begin();
	wl_ready_end();
}

static inline void wl_finish(void)
{
	wl_line_end();
	if (wl_linger_wanted)
		wl_await_stdin();
}

/* ---- options ---- */

enum wl_kind { WL_FLAG, WL_NUM, WL_STR };

struct wl_opt {
	const char *name;
	enum wl_kind kind;
	void *to;
	const char *arg;
	const char *help;
};

static const char *wl_comm_wanted;

/* Turns \xNN and \\ into bytes; returns the length.  A NUL cannot be meant and is refused. */
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
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 0);
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

static inline void wl_print_options(const struct wl_opt *opts)
{
	for (; opts->name; opts++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", opts->name, opts->arg ? " " : "",
			 opts->arg ? opts->arg : "");
		printf("  %-22s %s", left, opts->help);
		if (opts->kind == WL_NUM && *(uint64_t *)opts->to &&
		    *(uint64_t *)opts->to != WL_UNSET)
			printf(" (%llu)", (unsigned long long)*(uint64_t *)opts->to);
		else if (opts->kind == WL_STR && *(const char **)opts->to)
			printf(" (%s)", *(const char **)opts->to);
		putchar('\n');
	}
}

static inline const struct wl_opt *wl_find(const struct wl_opt *opts, const char *name, size_t size)
{
	for (; opts->name; opts++)
		if (strlen(opts->name) == size && !memcmp(opts->name, name, size))
			return opts;
	return NULL;
}

static inline void wl_start(int argc, char **argv, const char *name, const char *what,
			    const struct wl_opt *opts)
{
	const struct wl_opt common[] = {
		{"comm", WL_STR, &wl_comm_wanted, "NAME", "set comm; \\xNN gives any byte"},
		{"hold", WL_FLAG, &wl_hold_wanted, NULL,
		 "after the ready line wait for a byte or EOF on stdin"},
		{"linger", WL_FLAG, &wl_linger_wanted, NULL, "wait so again before the end"},
		{"timeout", WL_NUM, &wl_timeout_s, "S", "end with status 1 after S seconds"},
		{0},
	};
	struct sigaction action = {.sa_handler = wl_on_signal};

	wl_name = name;
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i], *value;
		const struct wl_opt *opt;
		size_t size;

		if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
			printf("usage: %s [OPTION...]\n%s\n\n", name, what);
			wl_print_options(opts);
			wl_print_options(common);
			puts("\nstatus: 0 events made, 77 this machine cannot, 1 failed, 2 usage");
			exit(WL_OK);
		}
		if (strncmp(arg, "--", 2))
			wl_die(WL_USAGE, "not an option: %s (try --help)", arg);
		size = strcspn(arg + 2, "=");
		value = arg[2 + size] ? arg + 3 + size : NULL;
		opt = wl_find(opts, arg + 2, size);
		if (!opt)
			opt = wl_find(common, arg + 2, size);
		if (!opt)
			wl_die(WL_USAGE, "unknown option: %s (try --help)", arg);
		if (opt->kind == WL_FLAG) {
			if (value)
				wl_die(WL_USAGE, "--%s takes no value", opt->name);
			*(bool *)opt->to = true;
			continue;
		}
		if (!value && ++i < argc)
			value = argv[i];
		if (!value)
			wl_die(WL_USAGE, "--%s needs %s", opt->name, opt->arg);
		if (opt->kind == WL_NUM)
			*(uint64_t *)opt->to = wl_number(opt->name, value);
		else
			*(const char **)opt->to = value;
	}
	if (wl_timeout_s < 1 || wl_timeout_s > 3600)
		wl_die(WL_USAGE, "--timeout: want 1 to 3600 seconds");
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
	/* A reader that went away must not stop the undoing: writes fail instead. */
	signal(SIGPIPE, SIG_IGN);
	atexit(wl_undo_all);
	alarm(wl_timeout_s);
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

static inline void wl_nap_ms(unsigned int ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

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
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
	if (close(fd))
		ok = false;
	return ok;
}

/* The number after KEY at the start of a line of a "KEY VALUE" file; a key that ends in '*' sums.
 */
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

struct wl_counters {
	const char *const *keys;
	size_t count;
	uint64_t value[24];
	bool known[24];
};

static inline void wl_count(struct wl_counters *c, const char *path, const char *const *keys,
			    size_t count)
{
	static __thread char text[32768];

	if (wl_slurp(path, text, sizeof(text)) < 0)
		text[0] = '\0';
	c->keys = keys;
	c->count = count;
	for (size_t i = 0; i < count; i++)
		c->known[i] = wl_lookup(text, keys[i], &c->value[i]);
}

/* Growth of what this kernel counts; unknown keys are left out, not shown as 0. */
static inline void wl_growth(const char *key, const struct wl_counters *before,
			     const struct wl_counters *after)
{
	wl_open(key, '{');
	for (size_t i = 0; i < before->count; i++) {
		char name[64];

		if (!after->known[i])
			continue;
		snprintf(name, sizeof(name), "%s", before->keys[i]);
		name[strcspn(name, "*")] = '\0';
		if (*name && name[strlen(name) - 1] == '_')
			name[strlen(name) - 1] = '\0';
		wl_i64(name, (int64_t)(after->value[i] - before->value[i]));
	}
	wl_close('}');
}

struct wl_switches {
	uint64_t voluntary, nonvoluntary;
};

static inline struct wl_switches wl_switches_of(pid_t tid)
{
	struct wl_switches s = {0};
	char path[64], text[4096];

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	if (wl_slurp(path, text, sizeof(text)) < 0)
		wl_die(WL_FAILED, "%s: %m", path);
	wl_lookup(text, "voluntary_ctxt_switches", &s.voluntary);
	wl_lookup(text, "nonvoluntary_ctxt_switches", &s.nonvoluntary);
	return s;
}

static inline void wl_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		wl_die(WL_CANNOT, "CPU %d: %m", cpu);
}

/* ---- places for files ---- */

static inline bool wl_keeps_files_in_memory(const char *dir)
{
	struct statfs fs;

	if (statfs(dir, &fs))
		return true;
	switch ((unsigned int)fs.f_type) {
	case 0x01021994: /* tmpfs */
	case 0x858458f6: /* ramfs */
	case 0x794c7630: /* overlay: where it writes is not told, in a guest it is tmpfs */
		return true;
	}
	return false;
}

/* The directory asked for, or the first usual one whose page cache can be dropped. */
static inline const char *wl_disk_dir(const char *wanted)
{
	static const char *const usual[] = {"/mnt/disk", "/var/tmp", "/tmp", "/root", "."};

	if (wanted) {
		if (access(wanted, W_OK))
			wl_die(WL_FAILED, "%s: %m", wanted);
		if (wl_keeps_files_in_memory(wanted))
			wl_die(WL_CANNOT, "%s: its files live in memory", wanted);
		return wanted;
	}
	for (size_t i = 0; i < WL_COUNT(usual); i++)
		if (!access(usual[i], W_OK) && !wl_keeps_files_in_memory(usual[i]))
			return usual[i];
	wl_die(WL_CANNOT, "no directory on a disk found (give --dir)");
}

static inline int wl_temp_file(const char *dir, int flags, char *path, size_t room)
{
	static unsigned int serial;
	int fd;

	if ((size_t)snprintf(path, room, "%s/workload-%s-%d-%u", dir, wl_name, getpid(),
			     serial++) >= room)
		wl_die(WL_USAGE, "%s: too long", dir);
	wl_undo(WL_UNDO_UNLINK, 0, path, NULL);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0600);
	if (fd < 0)
		wl_die(errno == EINVAL || errno == EROFS ? WL_CANNOT : WL_FAILED, "%s: %m", path);
	return fd;
}

/* A program under another name, by a link in a directory of its own. */
static inline void wl_alias(const char *program, const char *dir, const char *name, char *link,
			    size_t room)
{
	char own[WL_PATH];

	if ((size_t)snprintf(own, sizeof(own), "%s/workload-alias-%d", dir, getpid()) >=
		    sizeof(own) ||
	    (size_t)snprintf(link, room, "%s/%s", own, name) >= room)
		wl_die(WL_USAGE, "the program's name or directory is too long");
	wl_undo(WL_UNDO_RMDIR, 0, own, NULL);
	wl_undo(WL_UNDO_UNLINK, 0, link, NULL);
	if (mkdir(own, 0755) || symlink(program, link))
		wl_die(WL_FAILED, "%s: %m", own);
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

/* Even with -fno-omit-frame-pointer gcc gives a leaf that uses no stack no frame. */
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
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#else
	long ret = syscall(nr, a, b, c);

	return ret < 0 ? -errno : ret;
#endif
}

WL_FRAME void workload_sleep(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / WL_NSEC), .tv_nsec = (long)(ns % WL_NSEC)};

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

/* Blocks once, on FD when there is one, else for NS; returns the nanoseconds it took. */
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

#endif
