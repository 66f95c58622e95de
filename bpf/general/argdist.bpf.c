// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* argdist: frequency of arguments, results and other values of calls and tracepoints. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/targets/each_place.bpf.h"
#include "general/argdist.h"

OPT(bool, distribution);
OPT(__u64, signed_words); /* a bit for each word whose value is signed */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, 0);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(struct argdist_key));
	__uint(value_size, sizeof(struct argdist_count));
} counts SEC(".maps");

HISTOGRAM(ranges, struct argdist_range)

TRACED_CALLS(struct entered_call, struct argdist_key key;)

inline_ void add_value(const struct expression_out *out)
{
	struct argdist_range range = { .word = out->word };
	s64 value = out->values[0];

	if (out->faults) {
		count(LEDGER_UNJUDGED);
		return;
	}
	if (signed_words >> (out->word & 63) & 1 && value < 0) {
		range.negative = 1;
		value = -value;
	}
	ranges_add(&range, value);
}

inline_ void add_key(struct argdist_key *key)
{
	static const struct argdist_count none;
	struct argdist_count *c = map_row(&counts, key, &none);

	if (c)
		__sync_fetch_and_add(&c->count, 1);
	if (key->values.cut)
		count(LEDGER_TRUNCATED);
}

inline_ int at_wanted_place(void *ctx, struct expression_in *in, u64 id)
{
	struct traced_calls *b = current_slot(true);

	/* An interrupt on top of the program may be traced, too. */
	if (!b || b->stack.walking)
		return counted(LEDGER_UNTRACKED);
	b->stack.walking = 1;
	barrier();
	__builtin_memset(&b->key, 0, sizeof(b->key));
	expression_values(in, &b->key.values, id);
	if (distribution)
		add_value(&b->key.values);
	else
		add_key(&b->key);
	barrier();
	b->stack.walking = 0;
	return 0;
}
