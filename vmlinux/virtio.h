/* SPDX-License-Identifier: GPL-2.0-only */
/* Virtio devices and their queues. */
#pragma once

/* include/linux/scatterlist.h */
struct scatterlist {
	unsigned long page_link;
	unsigned int length;
};

/* include/linux/virtio.h */
struct virtio_device {
	struct device dev;
};

struct virtqueue {
	const char *name;
	struct virtio_device *vdev;
	unsigned int index;
};
