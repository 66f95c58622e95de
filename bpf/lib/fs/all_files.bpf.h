/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The option --all-files: not only regular files.
 *
 * Contexts: all.
 */
#ifndef CORETAP_ALL_FILES_BPF_H
#define CORETAP_ALL_FILES_BPF_H

#include "lib/fs/file_io.bpf.h"

OPT(bool, all_files);

inline_ bool wanted_mode(u16 mode)
{
	return all_files || (mode & MODE_FORMAT) == MODE_REGULAR;
}

#endif
