// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* icstat: lookups and misses of the inode cache. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/program.bpf.h"
#include "fs/icstat.h"

SUMS(inodes, struct icstat_sums)

/* A struct in 7.2, an enum in 6.18, a plain number in 6.12 and before. */
enum inode_state_flags_t {
	INODE_STATE_NONE,
};

struct inode___enumerated {
	enum inode_state_flags_t i_state;
} __attribute__((preserve_access_index));

struct inode___number {
	unsigned long i_state;
} __attribute__((preserve_access_index));

/* Created by this lookup, and not read yet. */
inline_ bool is_new(struct inode *inode)
{
	struct inode___enumerated *enumerated = (void *)inode;
	struct inode___number *number = (void *)inode;

	if (bpf_core_field_exists(inode->i_state.__state))
		return BPF_CORE_READ(inode, i_state.__state) & I_NEW;
	if (bpf_core_field_exists(enumerated->i_state))
		return BPF_CORE_READ(enumerated, i_state) & I_NEW;
	/* If it has 32 bits, as in 6.12, this flag is bit 0. */
	return BPF_CORE_READ(number, i_state) &
	       (bpf_core_field_size(number->i_state) == 8 ? 8 : I_NEW);
}

inline_ int looked_up(u64 found)
{
	struct inode *inode = (void *)found;

	if (!keep_current())
		return 0;
	SUM_ADD(inodes, lookups, 1);
	if (!inode || is_new(inode))
		SUM_ADD(inodes, misses, 1);
	return 0;
}

/* At the return of a function with this number of arguments. */
#define LOOKUP(name, function, arguments)                            \
	PROGRAM(name, "fexit/" #function, looked_up(ctx[arguments])) \
	SEC("kretprobe/" #function)                                  \
	int name##_kprobe(struct pt_regs *ctx)                       \
	{                                                            \
		return looked_up(PT_REGS_RC(ctx));                   \
	}

LOOKUP(by_number, iget_locked, 2)
LOOKUP(by_test, iget5_locked, 5)
LOOKUP(if_cached, ilookup, 2)
LOOKUP(by_test_rcu, iget5_locked_rcu, 5) /* since 6.11, by btrfs */
