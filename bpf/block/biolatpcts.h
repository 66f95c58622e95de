/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BIOLATPCTS_H
#define CORETAP_BIOLATPCTS_H

#include "lib/core/shared.h"

/* Start of a request's measured latency. */
enum biolatpcts_since { BIOLATPCTS_ISSUE, BIOLATPCTS_ALLOCATED, BIOLATPCTS_WANTED };

struct biolatpcts_key {
	__u32 disk;
	__u32 operation;
	__u32 bucket;
};

#endif
