// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* dcstat: lookups in the directory-entry cache. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/fs/look_up.bpf.h"
#include "lib/core/program.bpf.h"
#include "fs/dcstat.h"

SUMS(lookups, struct dcstat_sums)

inline_ int looked_up(struct nameidata *walk, u64 found)
{
	if (walk_is_repeated(found) || !keep_current())
		return 0;
	SUM_ADD(lookups, refs, 1);
	if (!found)
		SUM_ADD(lookups, slow, 1);
	return 0;
}

ON_LOOKUPS

inline_ int missed(void)
{
	if (keep_current())
		SUM_ADD(lookups, misses, 1);
	return 0;
}

FUNC_ENTRY(on_miss, d_alloc_parallel, missed())
