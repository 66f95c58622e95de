/* Looks up a known number of names, which are there or not. */
#include "workload.h"

static uint64_t absent, present;
static char dir[64], file[80];

static void look(int at, const char *name, int expected)
{
	char st[256];

	if ((syscall(SYS_newfstatat, at, name, st, 0) ? errno : 0) != expected)
		wl_die(WL_FAILED, "%s: %m", name);
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"absent", WL_NUM, &absent, "N", "names that are not there, each another one"},
		{"present", WL_NUM, &present, "N", "looks at one that is there"},
		{0},
	};
	char name[32];
	int fd, at;

	wl_start(argc, argv, "lookups", "Looks up names of files.", opts);
	/* In memory, of which the kernel keeps no names that are not there. */
	snprintf(dir, sizeof(dir), "/dev/shm/lookups-%d", getpid());
	snprintf(file, sizeof(file), "%s/present", dir);
	wl_undo(WL_UNDO_RMDIR, 0, dir, NULL);
	wl_undo(WL_UNDO_UNLINK, 0, file, NULL);
	if (mkdir(dir, 0700))
		wl_die(WL_CANNOT, "%s: %m", dir);
	fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || at < 0)
		wl_die(WL_FAILED, "%s: %m", file);
	wl_ready();

	for (uint64_t i = 0; i < absent; i++) {
		snprintf(name, sizeof(name), "absent-%llu", (unsigned long long)i);
		look(at, name, ENOENT);
	}
	for (uint64_t i = 0; i < present; i++)
		look(at, "present", 0);
	wl_line_begin();
	wl_str("dir", dir);
	wl_u64("absent", absent);
	wl_u64("present", present);
	wl_u64("lookups", absent + present);
	wl_finish();
	return WL_OK;
}
