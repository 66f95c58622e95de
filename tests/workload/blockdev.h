/* Block devices of our own, gone with the workload. */
#ifndef WORKLOAD_BLOCKDEV_H
#define WORKLOAD_BLOCKDEV_H

#include "workload.h"

#include <glob.h>

static inline void await_node(const char *node)
{
	for (int i = 0; access(node, W_OK) && i < 300; i++)
		wl_nap_ms(10);
	if (access(node, W_OK))
		wl_die(WL_CANNOT, "%s: %m", node);
}

/* Its file, which is made in this directory; NULL: in one on a disk. */
static inline int make_loop(const char *dir, uint64_t bytes, char *node, size_t room)
{
	char backing[WL_PATH];
	int control, number, loop, file;

	if (access("/dev/loop-control", F_OK)) {
		wl_undo(WL_UNDO_RMMOD, 0, "loop", NULL);
		wl_modprobe("loop", NULL);
	}
	control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		wl_die(WL_CANNOT, "/dev/loop-control: %m");
	file = wl_temp_file(wl_disk_dir(dir), 0, backing, sizeof(backing));
	if (posix_fallocate(file, 0, (off_t)bytes))
		wl_die(WL_CANNOT, "%s: no room for %llu bytes", backing, (unsigned long long)bytes);
	for (int tries = 0;; tries++) {
		number = ioctl(control, LOOP_CTL_GET_FREE);
		if (number < 0)
			wl_die(WL_CANNOT, "no free loop device: %m");
		snprintf(node, room, "/dev/loop%d", number);
		await_node(node);
		loop = open(node, O_RDWR | O_CLOEXEC);
		if (loop < 0)
			wl_die(WL_CANNOT, "%s: %m", node);
		if (!ioctl(loop, LOOP_SET_FD, file))
			break;
		close(loop);
		if (errno != EBUSY || tries > 10)
			wl_die(WL_CANNOT, "%s: %m", node);
	}
	wl_undo(WL_UNDO_LOOP, loop, NULL, NULL);
	close(control);
	return file;
}

static inline void make_zram(uint64_t bytes, char *node, size_t room)
{
	char text[64], file[WL_PATH];
	int number;

	if (access("/sys/class/zram-control", F_OK)) {
		wl_undo(WL_UNDO_RMMOD, 0, "zram", NULL);
		wl_modprobe("zram", "num_devices=0");
	}
	if (wl_slurp("/sys/class/zram-control/hot_add", text, sizeof(text)) < 0 ||
	    sscanf(text, "%d", &number) != 1)
		wl_die(WL_CANNOT, "zram: %m");
	snprintf(text, sizeof(text), "%d", number);
	wl_undo(WL_UNDO_WRITE, 0, "/sys/class/zram-control/hot_remove", text);
	snprintf(file, sizeof(file), "/sys/block/zram%d/reset", number);
	wl_undo(WL_UNDO_WRITE, 0, file, "1");
	snprintf(file, sizeof(file), "/sys/block/zram%d/disksize", number);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	if (!wl_write_file(file, text))
		wl_die(WL_CANNOT, "%s: %m", file);
	snprintf(node, room, "/dev/zram%d", number);
	await_node(node);
}

/* The disk at a place in sysfs, by its name there. */
static inline void find_disk(const char *pattern, char *node, size_t room)
{
	glob_t found = {0};

	for (int i = 0; glob(pattern, 0, NULL, &found) && i < 300; i++)
		wl_nap_ms(10);
	if (!found.gl_pathc)
		wl_die(WL_CANNOT, "no %s", pattern);
	snprintf(node, room, "/dev/%s", strrchr(found.gl_pathv[0], '/') + 1);
	globfree(&found);
	await_node(node);
}

static inline void make_scsi(uint64_t bytes, char *node, size_t room)
{
	char text[64];

	snprintf(text, sizeof(text), "dev_size_mb=%llu", (unsigned long long)(bytes / WL_MIB + 8));
	wl_modprobe("sd_mod", NULL);
	if (access("/sys/bus/pseudo/drivers/scsi_debug", F_OK)) {
		wl_undo(WL_UNDO_RMMOD, 0, "scsi_debug", NULL);
		wl_modprobe("scsi_debug", text);
	}
	if (access("/sys/bus/pseudo/drivers/scsi_debug", F_OK))
		wl_die(WL_CANNOT, "no module scsi_debug");
	find_disk("/sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block/sd*", node,
		  room);
}

/* One that the machine has: guests of scripts/vm with --nvme. */
static inline void make_nvme(char *node, size_t room)
{
	wl_modprobe("nvme", NULL);
	if (access("/sys/module/nvme", F_OK))
		wl_die(WL_CANNOT, "no module nvme");
	find_disk("/sys/block/nvme0n1", node, room);
}

/* A mirror of two loop devices. */
static inline void make_md(const char *dir, uint64_t bytes, char *node, size_t room)
{
	char disk[2][WL_PATH], file[WL_PATH + 64], text[64];
	int number = 100 + getpid() % 400;
	const char *const steps[][2] = {{"metadata_version", "none"},
					{"level", "raid1"},
					{"raid_disks", "2"},
					{"component_size", text},
					{"resync_start", "none"},
					{"new_dev", NULL},
					{"new_dev", NULL},
					{"slot", "0"},
					{"slot", "1"},
					{"array_state", "active"}};
	size_t disks = 0, slots = 0;

	wl_modprobe("raid1", NULL);
	snprintf(text, sizeof(text), "md%d", number);
	if (!wl_write_file("/sys/module/md_mod/parameters/new_array", text))
		wl_die(WL_CANNOT, "no md: %m");
	for (int i = 0; i < 2; i++)
		close(make_loop(dir, bytes + WL_MIB, disk[i], sizeof(disk[i])));
	snprintf(file, sizeof(file), "/sys/block/md%d/md/array_state", number);
	wl_undo(WL_UNDO_WRITE, 0, file, "clear");
	snprintf(text, sizeof(text), "%llu", (unsigned long long)(bytes + 1023) / 1024);
	for (size_t i = 0; i < WL_COUNT(steps); i++) {
		const char *value = steps[i][1];
		char numbers[64];
		struct stat st;

		snprintf(file, sizeof(file), "/sys/block/md%d/md/%s", number, steps[i][0]);
		if (!value) {
			stat(disk[disks++], &st);
			snprintf(numbers, sizeof(numbers), "%u:%u", major(st.st_rdev),
				 minor(st.st_rdev));
			value = numbers;
		} else if (!strcmp(steps[i][0], "slot")) {
			snprintf(file, sizeof(file), "/sys/block/md%d/md/dev-%s/slot", number,
				 disk[slots++] + strlen("/dev/"));
		}
		if (!wl_write_file(file, value))
			wl_die(WL_CANNOT, "%s: %m", file);
	}
	snprintf(node, room, "/dev/md%d", number);
	await_node(node);
}

#endif
