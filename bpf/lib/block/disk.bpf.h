/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The disk selected by --disk.
 *
 * Contexts: all.
 */
#ifndef CORETAP_DISK_BPF_H
#define CORETAP_DISK_BPF_H

#include "lib/core/coretap.bpf.h"

OPT(bool, filter_disk_on);
OPT(__u32, filter_disk); /* major << 20 | minor */

inline_ u32 disk_number(struct gendisk *disk)
{
	return BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor);
}

inline_ bool wanted_disk(u32 number)
{
	return !filter_disk_on || number == filter_disk;
}

#endif
