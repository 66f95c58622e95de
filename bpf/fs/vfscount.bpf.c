// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* vfscount: calls of VFS functions. */
#include "lib/targets/count_calls.bpf.h"
