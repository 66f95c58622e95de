/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs on functions and USDT probes that the tool knows by name
 * (coretap/known_functions.hpp), in all files that define them.
 * Each has a role, which the loader stores here by target number.
 *
 * Contexts: the running task, outside of interrupts, preemptible.
 */
#ifndef CORETAP_ROLES_BPF_H
#define CORETAP_ROLES_BPF_H

#include "lib/targets/target.bpf.h"

#define TARGET_ROLES 64 /* maximum */

const volatile __u8 target_roles[TARGET_ROLES] = {};

/* 0: none */
inline_ u32 role_of(void *ctx)
{
	u64 id = target_id(ctx, TARGET_USER);

	barrier_var(id);
	return id < TARGET_ROLES ? target_roles[id] : 0;
}

#endif
