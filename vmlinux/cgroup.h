/* SPDX-License-Identifier: GPL-2.0-only */
/* Control groups. */
#pragma once

/* include/linux/kernfs.h */
struct kernfs_node {
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

struct css_set {
	struct cgroup *dfl_cgrp;
};
