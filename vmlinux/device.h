/* SPDX-License-Identifier: GPL-2.0-only */
/* Devices of every sort. */
#pragma once

/* include/linux/kobject.h, include/linux/device.h */
struct kobject {
	const char *name;
};

struct device_driver {
	const char *name;
};

struct device {
	struct kobject kobj;
	struct device_driver *driver;
	unsigned int devt;
};

/* include/linux/tty_driver.h, include/linux/tty.h */
struct tty_driver {
	int major;
	int minor_start;
};

struct tty_struct {
	int index;
	struct tty_driver *driver;
	void *driver_data;
};

struct tty_file_private {
	struct tty_struct *tty;
};
