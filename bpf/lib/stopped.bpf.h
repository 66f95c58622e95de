/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Set when tracing ends: the kernel takes a tenth of a second to detach each classic tracepoint or
 * uprobe. Meanwhile nobody reads records, and of two programs that belong together one may be gone.
 */
#ifndef CORETAP_STOPPED_BPF_H
#define CORETAP_STOPPED_BPF_H

#include "lib/coretap.bpf.h"

volatile bool tracing_stopped;

#endif
