/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that several CPUs write, with each value read once.
 *
 * Contexts: all, NMIs included.
 */
#ifndef CORETAP_EXCHANGE_BPF_H
#define CORETAP_EXCHANGE_BPF_H

#include "lib/core/coretap.bpf.h"

/*
 * Set by the loader if the kernel has the instruction: 5.12 (5ffa25502b5a),
 * arm64 5.18 (1902472b4fa9). Other kernels reject a program that contains it,
 * even in dead code, so the loader then removes it (src/program/exchange.hpp).
 * For programs on tracepoints with BTF and on targets (target.bpf.h).
 */
OPT(bool, has_exchange);

/* Writes a value and returns the previous one; not atomic if the kernel lacks the instruction.
 */
inline_ u64 exchange(u64 *at, u64 value)
{
	volatile u64 *slot = at;
	u64 before;

	if (has_exchange)
		return __sync_lock_test_and_set(at, value);
	before = *slot;
	*slot = value;
	return before;
}

#endif
