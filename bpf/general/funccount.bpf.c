// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* funccount: calls of functions, tracepoints and USDT probes. */
#include "lib/targets/count_calls.bpf.h"
