/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_NVMELATENCY_H
#define CORETAP_NVMELATENCY_H

#include "lib/core/shared.h"

#define NVME_DISK_NAME 32

struct nvmelatency_key {
	char disk[NVME_DISK_NAME]; /* empty: a command to the controller */
	__u32 controller;
	__u32 opcode;
	__u32 queue;  /* 0: the admin queue, or not requested */
	__u32 admin;  /* 1: an admin command */
	__u32 status; /* 0: success, or not requested */
	__u32 pad;
};

#endif
