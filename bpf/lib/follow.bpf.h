/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Members of kernel structures whose address the verifier knows nothing of: from a record, a map or
 * a helper. A bad address gives zeros.
 */
#ifndef CORETAP_FOLLOW_BPF_H
#define CORETAP_FOLLOW_BPF_H

#include "lib/coretap.bpf.h"
#include "lib/follow.h"

/*
 * bpf_rdonly_cast makes an address a pointer of a type, by which a member is a load: 6.2
 * (a35b9af4ec2c). Before, each is a call of a helper, which takes 20 ns and more where returns are
 * mitigated. The loader makes it that call, and sets the ids of types where the kernel has it
 * (src/program/casts.hpp). For structures:
 *	FOLLOWED(file);
 *	mode = FOLLOW(file, address, f_inode, i_mode);
 */
static void *(*const cast_to_type)(const void *address, u32 type) = (void *)CAST_CALL;

#define FOLLOWED(type) OPT(__u32, type_id_##type)

#define CAST(type, address) ((struct type *)cast_to_type((void *)(address), type_id_##type))

#define FOLLOW(type, address, ...)                                       \
	(type_id_##type ? ___arrow(CAST(type, address), ##__VA_ARGS__) : \
			  BPF_CORE_READ((struct type *)(address), ##__VA_ARGS__))

/*
 * One member that is a pointer, as a number: the verifier lets no pointer be calculated with, and
 * this structure begins with a number.
 */
struct timespec64 {
	s64 tv_sec;
} __attribute__((preserve_access_index));

FOLLOWED(timespec64);

#define FOLLOW_NUMBER(type, address, member)                                            \
	(type_id_##type ? (u64)CAST(timespec64, &CAST(type, address)->member)->tv_sec : \
			  (u64)BPF_CORE_READ((struct type *)(address), member))

#endif
