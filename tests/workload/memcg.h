/* A private memory cgroup, of either version, for workloads that are to run out of memory. */
#ifndef WORKLOAD_MEMCG_H
#define WORKLOAD_MEMCG_H

#include "workload.h"

static int cg_version;
static char cg_root[WL_PATH], cg_dir[WL_PATH + 64];

static inline void find_memcg(void)
{
	FILE *mounts = fopen("/proc/self/mounts", "re");
	char line[2048], type[32], opts[512], text[512];

	while (mounts && !cg_version && fgets(line, sizeof(line), mounts)) {
		if (sscanf(line, "%*s %1023s %31s %511s", cg_root, type, opts) != 3)
			continue;
		if (!strcmp(type, "cgroup") && strstr(opts, "memory"))
			cg_version = 1;
		if (!strcmp(type, "cgroup2") &&
		    wl_slurp(wl_format("%s/cgroup.controllers", cg_root), text, sizeof(text)) > 0 &&
		    strstr(text, "memory"))
			cg_version = 2;
	}
	if (mounts)
		fclose(mounts);
	lacks_if(!cg_version, "no memory cgroup controller is mounted");
}

static inline const char *cg_file(const char *name)
{
	return wl_format("%s/%s", cg_dir, name);
}

static inline uint64_t cg_number(const char *name, const char *key)
{
	char text[8192];
	uint64_t value = 0;

	must(wl_slurp(cg_file(name), text, sizeof(text)), name);
	if (!key)
		return strtoull(text, NULL, 10);
	wl_lookup(text, key, &value);
	return value;
}

static inline void make_memcg(uint64_t limit, bool swaps)
{
	char text[512];

	find_memcg();
	const char *control = wl_format("%s/cgroup.subtree_control", cg_root);
	if (cg_version == 2 && wl_slurp(control, text, sizeof(text)) >= 0 &&
	    !strstr(text, "memory")) {
		/* Other workloads would lose their limit; a guest may keep the controller. */
		if (!getenv("CORETAP_GUEST"))
			wl_undo(WL_UNDO_WRITE, 0, control, "-memory");
		wl_set(control, "+memory");
	}
	snprintf(cg_dir, sizeof(cg_dir), "%s/workload-%d", cg_root, getpid());
	wl_undo(WL_UNDO_RMDIR, 0, cg_dir, NULL);
	can(mkdir(cg_dir, 0755), cg_dir);
	wl_set(cg_file(cg_version == 2 ? "memory.max" : "memory.limit_in_bytes"),
	       wl_format("%lu", limit));
	/* Swappable memory would not cause a kill; without swap there is no file. */
	if (!swaps)
		wl_write_file(cg_file(cg_version == 2 ? "memory.swap.max" : "memory.swappiness"),
			      "0");
}

static inline void enter_memcg(pid_t pid)
{
	wl_set(cg_file("cgroup.procs"), wl_format("%d", pid));
}

#endif
