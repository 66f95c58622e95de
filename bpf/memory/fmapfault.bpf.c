// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* fmapfault: page faults on mapped files, by process and file. */
#define FILES_ONLY true
#define BY_PROCESS true
#include "lib/file_faults.bpf.h"
