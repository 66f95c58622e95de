// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* vfscount: calls of the virtual file system's functions. */
#include "lib/count_calls.bpf.h"
