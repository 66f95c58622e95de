/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FOLLOW_H
#define CORETAP_FOLLOW_H

/* Placeholder for the call of bpf_rdonly_cast (lib/core/follow.bpf.h); no helper has this number.
 */
#define CAST_CALL 0x7fff0001

#endif
