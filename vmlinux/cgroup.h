/* SPDX-License-Identifier: GPL-2.0-only */
/* Control groups. */
#pragma once

/* include/linux/kernfs.h */
struct kernfs_node {
	struct kernfs_node *__parent;
	const char *name;
	u64 id;
};

/* include/linux/cgroup-defs.h */
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

/* include/linux/cgroup_subsys.h: its number depends on the kernel's configuration */
enum cgroup_subsys_id {
	memory_cgrp_id = 4,
};

struct css_set {
	struct cgroup_subsys_state *subsys[15];
	struct cgroup *dfl_cgrp;
};

/* include/linux/page_counter.h, include/linux/memcontrol.h */
struct page_counter {
	atomic_long_t usage;
	unsigned long max;
	struct page_counter *parent;
};

struct mem_cgroup_private_id {
	int id;
};

struct mem_cgroup {
	struct cgroup_subsys_state css;
	struct mem_cgroup_private_id id;
	struct page_counter memory;
	struct mem_cgroup_per_node *nodeinfo[];
};
