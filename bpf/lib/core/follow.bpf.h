/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Members of kernel structures for addresses that are scalars to the
 * verifier: from a record, a map or a helper. A bad address gives zeros.
 *
 * Contexts: all, NMIs included.
 */
#ifndef CORETAP_FOLLOW_BPF_H
#define CORETAP_FOLLOW_BPF_H

#include "lib/core/coretap.bpf.h"
#include "lib/core/placeholders.h"

/*
 * bpf_rdonly_cast turns an address into a typed pointer, whose members are plain
 * loads: 6.2 (a35b9af4ec2c). Before, each read is a helper call, which takes 20
 * ns and more with return mitigations. The loader patches in the call, and sets
 * the type ids if the kernel has it (src/program/casts.hpp). For structures:
 *	FOLLOWED(file);
 *	mode = FOLLOW(file, address, f_inode, i_mode);
 */
static void *(*const cast_to_type)(const void *address, u32 type)
	__attribute__((unused)) = (void *)CAST_CALL;

#define FOLLOWED(type) OPT(__u32, type_id_##type)

#define CAST(type, address) ((struct type *)cast_to_type((void *)(address), type_id_##type))

#define FOLLOW(type, address, ...)                                       \
	(type_id_##type ? ___arrow(CAST(type, address), ##__VA_ARGS__) : \
			  BPF_CORE_READ((struct type *)(address), ##__VA_ARGS__))

/*
 * One pointer member as a number: the verifier rejects pointer
 * arithmetic, and this structure starts with a number.
 */
struct timespec64 {
	s64 tv_sec;
} __attribute__((preserve_access_index));

FOLLOWED(timespec64);

#define FOLLOW_NUMBER(type, address, member)                                            \
	(type_id_##type ? (u64)CAST(timespec64, &CAST(type, address)->member)->tv_sec : \
			  (u64)BPF_CORE_READ((struct type *)(address), member))

#endif
