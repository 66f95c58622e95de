// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ffaults: page faults by file. */
#include "lib/file_faults.bpf.h"
