/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bitmaps in words of 64 bits.
 *
 * Contexts: all, NMIs included.
 */
#ifndef CORETAP_BITS_BPF_H
#define CORETAP_BITS_BPF_H

#include "lib/core/coretap.bpf.h"

#define WORD_BITS 64

/* The bits from `first` to `last` that are in this word; at least one is. */
inline_ u64 bits_of_word(u64 word, u64 first, u64 last)
{
	u64 begin = word * WORD_BITS, end = begin + WORD_BITS - 1;
	u64 from = first > begin ? first - begin : 0;
	u64 to = last < end ? last - begin : WORD_BITS - 1;

	return (~0ULL >> (WORD_BITS - 1 - (to & 63))) & (~0ULL << (from & 63));
}

#endif
