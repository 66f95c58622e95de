/* Looks up a known number of names, existing or not. */
#include "workload.h"

WL_NUMBER("absent", absent, 0, "names that are not there, each another one");
WL_NUMBER("present", present, 0, "looks at one that is there");

static void look(int at, const char *name, int expected)
{
	char st[256];

	fail_if((syscall(SYS_newfstatat, at, name, st, 0) ? errno : 0) != expected, name);
}

static int workload(void)
{
	/* On a file system in memory, for which the kernel keeps no negative dentries. */
	const char *dir = wl_make_dir("/dev/shm");
	wl_new_file(wl_at(dir, "present"));
	int at = must(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), dir);
	wl_ready();

	for (uint64_t i = 0; i < absent; i++)
		look(at, wl_format("absent-%lu", i), ENOENT);
	for (uint64_t i = 0; i < present; i++)
		look(at, "present", 0);
	return wl_result("dir %s absent %lu present %lu lookups %lu", dir, absent, present,
			 absent + present);
}
