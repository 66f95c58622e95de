/* Private block devices, removed with the workload. */
#ifndef WORKLOAD_BLOCKDEV_H
#define WORKLOAD_BLOCKDEV_H

#include "workload.h"

#include <glob.h>

#define NODE_ROOM 64

static inline void await_node(const char *node)
{
	for (int i = 0; access(node, W_OK) && i < 300; i++)
		wl_nap_ms(10);
	can(access(node, W_OK), node);
}

/* Unless the path already exists. */
static inline void load_module(const char *path, const char *module, const char *parameter)
{
	if (access(path, F_OK)) {
		wl_undo(WL_UNDO_RMMOD, 0, module, NULL);
		wl_modprobe(module, parameter);
	}
	can(access(path, F_OK), path);
}

/* Its file is created in this directory; NULL: in one on a disk. */
static inline int make_loop(const char *dir, uint64_t bytes, char *node)
{
	char backing[WL_PATH];
	int loop;

	load_module("/dev/loop-control", "loop", NULL);
	int control = can(open("/dev/loop-control", O_RDWR | O_CLOEXEC), "/dev/loop-control");
	int file = wl_temp_file(wl_disk_dir(dir), 0, backing);
	cannot_if(posix_fallocate(file, 0, (off_t)bytes), backing);
	for (int tries = 0;; tries++) {
		snprintf(node, NODE_ROOM, "/dev/loop%d",
			 can(ioctl(control, LOOP_CTL_GET_FREE), "a free loop device"));
		await_node(node);
		loop = can(open(node, O_RDWR | O_CLOEXEC), node);
		if (!ioctl(loop, LOOP_SET_FD, file))
			break;
		close(loop);
		cannot_if(errno != EBUSY || tries > 10, node);
	}
	wl_undo(WL_UNDO_LOOP, loop, NULL, NULL);
	close(control);
	return file;
}

static inline void make_zram(uint64_t bytes, char *node)
{
	char text[64];

	load_module("/sys/class/zram-control", "zram", "num_devices=0");
	can(wl_slurp("/sys/class/zram-control/hot_add", text, sizeof(text)), "zram");
	int number = atoi(text);
	wl_undo(WL_UNDO_WRITE, 0, "/sys/class/zram-control/hot_remove", wl_format("%d", number));
	wl_undo(WL_UNDO_WRITE, 0, wl_format("/sys/block/zram%d/reset", number), "1");
	wl_set(wl_format("/sys/block/zram%d/disksize", number), wl_format("%lu", bytes));
	snprintf(node, NODE_ROOM, "/dev/zram%d", number);
	await_node(node);
}

/* The disk that matches a sysfs pattern, by its name there. */
static inline void find_disk(const char *pattern, char *node)
{
	glob_t found = {0};

	for (int i = 0; glob(pattern, 0, NULL, &found) && i < 300; i++)
		wl_nap_ms(10);
	cannot_if(!found.gl_pathc, pattern);
	snprintf(node, NODE_ROOM, "/dev/%s", strrchr(found.gl_pathv[0], '/') + 1);
	globfree(&found);
	await_node(node);
}

static inline void make_scsi(uint64_t bytes, char *node)
{
	wl_modprobe("sd_mod", NULL);
	load_module("/sys/bus/pseudo/drivers/scsi_debug", "scsi_debug",
		    wl_format("dev_size_mb=%lu", bytes / WL_MIB + 8));
	find_disk("/sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block/sd*", node);
}

/* An NVMe disk of the machine: guests of scripts/vm with --nvme. */
static inline void make_nvme(char *node)
{
	wl_modprobe("nvme", NULL);
	can(access("/sys/module/nvme", F_OK), "the module nvme");
	find_disk("/sys/block/nvme0n1", node);
}

/* A mirror of two loop devices. */
static inline void make_md(const char *dir, uint64_t bytes, char *node)
{
	const char *const steps[][2] = {{"metadata_version", "none"},
					{"level", "raid1"},
					{"raid_disks", "2"},
					{"component_size", NULL},
					{"resync_start", "none"}};
	const int number = 100 + getpid() % 400;
	char disk[2][NODE_ROOM], md[64];
	struct stat st;

	wl_modprobe("raid1", NULL);
	wl_set("/sys/module/md_mod/parameters/new_array", wl_format("md%d", number));
	for (int i = 0; i < 2; i++)
		close(make_loop(dir, bytes + WL_MIB, disk[i]));
	snprintf(md, sizeof(md), "/sys/block/md%d/md", number);
	wl_undo(WL_UNDO_WRITE, 0, wl_format("%s/array_state", md), "clear");
	for (size_t i = 0; i < WL_COUNT(steps); i++)
		wl_set(wl_format("%s/%s", md, steps[i][0]),
		       steps[i][1] ? steps[i][1] : wl_format("%lu", (bytes + 1023) / 1024));
	for (int i = 0; i < 2; i++) {
		stat(disk[i], &st);
		wl_set(wl_format("%s/new_dev", md),
		       wl_format("%u:%u", major(st.st_rdev), minor(st.st_rdev)));
	}
	for (int i = 0; i < 2; i++)
		wl_set(wl_format("%s/dev-%s/slot", md, disk[i] + strlen("/dev/")),
		       wl_format("%d", i));
	wl_set(wl_format("%s/array_state", md), "active");
	snprintf(node, NODE_ROOM, "/dev/md%d", number);
	await_node(node);
}

#endif
