/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared with the loader: calls that it completes with the kernel's functions, or removes. */
#ifndef CORETAP_PLACEHOLDERS_H
#define CORETAP_PLACEHOLDERS_H

/* No helper has these numbers. */
#define CAST_CALL 0x7fff0001            /* bpf_rdonly_cast: lib/core/follow.bpf.h */
#define PREEMPT_DISABLE_CALL 0x7fff0002 /* bpf_preempt_disable: lib/core/coretap.bpf.h */
#define PREEMPT_ENABLE_CALL 0x7fff0003  /* bpf_preempt_enable: the same */

#endif
