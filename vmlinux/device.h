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
