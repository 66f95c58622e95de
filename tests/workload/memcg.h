/* A memory cgroup of our own, of either version, for workloads that are to run out of memory. */
#ifndef WORKLOAD_MEMCG_H
#define WORKLOAD_MEMCG_H

#include "workload.h"

static int cg_version;
static char cg_root[WL_PATH], cg_dir[WL_PATH + 64];

static inline bool find_memcg(void)
{
	FILE *mounts = fopen("/proc/self/mounts", "re");
	char line[2048], where[WL_PATH], type[32], opts[512], path[WL_PATH + 64], text[512];

	while (mounts && !cg_version && fgets(line, sizeof(line), mounts)) {
		if (sscanf(line, "%*s %1023s %31s %511s", where, type, opts) != 3)
			continue;
		if (!strcmp(type, "cgroup") && strstr(opts, "memory"))
			cg_version = 1;
		if (!strcmp(type, "cgroup2")) {
			snprintf(path, sizeof(path), "%s/cgroup.controllers", where);
			if (wl_slurp(path, text, sizeof(text)) > 0 && strstr(text, "memory"))
				cg_version = 2;
		}
		if (cg_version)
			strcpy(cg_root, where);
	}
	if (mounts)
		fclose(mounts);
	return cg_version;
}

static inline void cg_file(const char *name, char *path, size_t room)
{
	if ((size_t)snprintf(path, room, "%s/%s", cg_dir, name) >= room)
		wl_die(WL_FAILED, "%s: too long", cg_dir);
}

static inline uint64_t cg_number(const char *name, const char *key)
{
	char path[WL_PATH + 128], text[8192];
	uint64_t value = 0;

	cg_file(name, path, sizeof(path));
	if (wl_slurp(path, text, sizeof(text)) < 0)
		wl_die(WL_FAILED, "%s: %m", path);
	if (!key)
		return strtoull(text, NULL, 10);
	wl_lookup(text, key, &value);
	return value;
}

static inline void make_memcg(uint64_t limit, bool swaps)
{
	char path[WL_PATH + 128], text[512];

	if (!find_memcg())
		wl_die(WL_CANNOT, "no memory cgroup controller is mounted");
	if (cg_version == 2) {
		snprintf(path, sizeof(path), "%s/cgroup.subtree_control", cg_root);
		if (wl_slurp(path, text, sizeof(text)) >= 0 && !strstr(text, "memory")) {
			/* Another workload's would lose its limit; a guest may keep the controller.
			 */
			if (!getenv("CORETAP_GUEST"))
				wl_undo(WL_UNDO_WRITE, 0, path, "-memory");
			if (!wl_write_file(path, "+memory"))
				wl_die(WL_CANNOT, "%s: %m", path);
		}
	}
	snprintf(cg_dir, sizeof(cg_dir), "%s/workload-%d", cg_root, getpid());
	wl_undo(WL_UNDO_RMDIR, 0, cg_dir, NULL);
	if (mkdir(cg_dir, 0755))
		wl_die(WL_CANNOT, "%s: %m", cg_dir);
	cg_file(cg_version == 2 ? "memory.max" : "memory.limit_in_bytes", path, sizeof(path));
	snprintf(text, sizeof(text), "%llu", (unsigned long long)limit);
	if (!wl_write_file(path, text))
		wl_die(WL_CANNOT, "%s: %m", path);
	/* What could be swapped out would not have to be killed; without swap there is no file. */
	cg_file(cg_version == 2 ? "memory.swap.max" : "memory.swappiness", path, sizeof(path));
	if (!swaps)
		wl_write_file(path, "0");
}

static inline void enter_memcg(pid_t pid)
{
	char path[WL_PATH + 128], text[32];

	cg_file("cgroup.procs", path, sizeof(path));
	snprintf(text, sizeof(text), "%d", pid);
	if (!wl_write_file(path, text))
		wl_die(WL_CANNOT, "%s: %m", path);
}

#endif
