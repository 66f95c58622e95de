/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared with the loader. */
#ifndef CORETAP_PREEMPT_H
#define CORETAP_PREEMPT_H

/* Placeholders for calls of bpf_preempt_disable and bpf_preempt_enable (lib/core/program.bpf.h);
 * no helper has these numbers. */
#define PREEMPT_DISABLE_CALL 0x7fff0002
#define PREEMPT_ENABLE_CALL 0x7fff0003

#endif
