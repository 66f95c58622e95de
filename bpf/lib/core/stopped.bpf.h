/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Set when tracing ends: the kernel takes a tenth of a second to detach each classic tracepoint or
 * uprobe. Meanwhile records are not read, and one of two paired programs may be detached already.
 *
 * Contexts: all, NMIs included.
 */
#ifndef CORETAP_STOPPED_BPF_H
#define CORETAP_STOPPED_BPF_H

#include "lib/core/coretap.bpf.h"

volatile bool tracing_stopped;

#endif
