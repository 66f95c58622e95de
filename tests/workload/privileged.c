/* Makes calls that need capabilities, with them and without, and prints which ones. */
#include "workload.h"

#include <linux/capability.h>
#include <sys/fsuid.h>

#define CHECKS 6
#define NOBODY 65534

WL_NUMBER("rounds", rounds, 1, "how often");

static void put_effective(uint32_t low, uint32_t high)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	fail_if(syscall(SYS_capget, &header, data), "capget");
	data[0].effective = low & data[0].permitted;
	data[1].effective = high & data[1].permitted;
	fail_if(syscall(SYS_capset, &header, data), "capset");
}

static void checked(bool tell, uint64_t capability, const char *call, bool denied, bool failed)
{
	fail_if(denied != failed && capability != CAP_SETUID, call);
	if (tell)
		wl_object(NULL, "capability %lu call %s denied %i", capability, call, denied);
}

/* A user id that the process already has needs no capability, but the kernel checks first. */
static __attribute__((noinline)) void use_capabilities(bool tell, bool denied)
{
	int nice_now = getpriority(PRIO_PROCESS, 0);

	checked(tell, CAP_SYS_CHROOT, "chroot", denied, chroot("/"));
	checked(tell, CAP_SETUID, "setuid", denied, setuid(getuid()));
	checked(tell, CAP_SYS_NICE, "setpriority", denied,
		setpriority(PRIO_PROCESS, 0, nice_now - 1));
	setpriority(PRIO_PROCESS, 0, nice_now);
}

/* As another user, in a separate process: protected files of a process are checked without an
 * audit. */
static void read_status_of_init(void)
{
	pid_t child = fork();
	char line[512];
	int fd, status;

	if (child == 0) {
		setfsuid(NOBODY);
		fd = open("/proc/1/stat", O_RDONLY | O_CLOEXEC);
		_exit(fd < 0 || read(fd, line, sizeof(line)) <= 0);
	}
	fail_if(child < 0 || waitpid(child, &status, 0) != child || status, "/proc/1/stat");
}

static int workload(void)
{
	const struct rlimit none = {0, 0};

	lacks_if(geteuid(), "not root");
	setrlimit(RLIMIT_NICE, &none);
	wl_ready();
	wl_open("scene", '[');
	for (uint64_t i = 0; i < rounds; i++) {
		use_capabilities(i == 0, false);
		put_effective(0, 0);
		use_capabilities(i == 0, true);
		put_effective(UINT32_MAX, UINT32_MAX);
	}
	read_status_of_init();
	wl_close(']');
	return wl_result("checks %lu", rounds * CHECKS);
}
