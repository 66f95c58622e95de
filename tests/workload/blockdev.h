/* Block devices of our own, gone with the workload. */
#ifndef WORKLOAD_BLOCKDEV_H
#define WORKLOAD_BLOCKDEV_H

#include "workload.h"

static inline void await_node(const char *node)
{
	for (int i = 0; access(node, W_OK) && i < 300; i++)
		wl_nap_ms(10);
	if (access(node, W_OK))
		wl_die(WL_CANNOT, "%s: %m", node);
}

/* Its file is made in this directory; NULL: in one on a disk. */
static inline void make_loop(const char *dir, uint64_t bytes, char *node, size_t room)
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
	close(file);
	close(control);
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

#endif
