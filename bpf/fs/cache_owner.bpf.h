/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory cgroup that most of a file's cached pages are charged to, by up to OWNER_LOOKS of
 * them, spread over the file. The tree is read without locks: what is not a page is not counted.
 *
 * Contexts: iterators.
 */
#ifndef CORETAP_CACHE_OWNER_BPF_H
#define CORETAP_CACHE_OWNER_BPF_H

#include "lib/core/text.bpf.h"
#include "lib/mm/page_memcg.bpf.h"
#include "fs/cachefiles.h"

OPT(bool, owners);

#define OWNER_LOOKS 64
#define OWNER_GROUPS 8 /* more cgroups than these in one file: only the first ones */
#define OWNER_SLOTS 64
#define OWNER_LEVELS 11 /* 64 bits of the index, 6 or more of them in each level */

struct owner_search {
	u64 head, index;
	u64 slots[OWNER_SLOTS]; /* of the node that was read last */
	struct mem_cgroup *group[OWNER_GROUPS];
	u32 pages[OWNER_GROUPS];
	u32 looked, unused;
};

/* For the iterators of open and of mapped files. */
SCRATCH_EACH(owner_search, struct owner_search, 2);

#define XA_SPECIAL 4096 /* smaller entries are marks of the tree */

inline_ bool xa_is_inner(u64 entry)
{
	return (entry & 3) == 2 && entry > XA_SPECIAL;
}

inline_ bool xa_is_page(u64 entry)
{
	return !(entry & 3) && entry > XA_SPECIAL;
}

/*
 * The first entry from this one on, around the end of the node: a sparse file's pages are found,
 * too. Pages that reclaim has evicted are no entries.
 */
__noinline u64 owner_entry(u32 from, u32 user)
{
	struct owner_search *s = scratch_at(&owner_search, user);
	u64 entry;

	/* Up to 6.7 the verifier checks this function even if it is not called. */
	if (!owners || !s)
		return 0;
	for (u32 i = 0; i < OWNER_SLOTS; i++) {
		entry = s->slots[(from + i) & (OWNER_SLOTS - 1)];
		if (xa_is_inner(entry) || xa_is_page(entry))
			return entry;
	}
	return 0;
}

/* The entry below a node; 0: none. */
__noinline u64 owner_below(u64 node, u32 user)
{
	struct owner_search *s = scratch_at(&owner_search, user);
	struct xa_node *inner = (void *)(node - 2);
	u32 bytes = bpf_core_field_size(inner->slots);
	u8 shift = 0;

	if (!owners || !s || !bytes || bytes > sizeof(s->slots))
		return 0;
	if (bytes < sizeof(s->slots)) /* CONFIG_BASE_SMALL */
		__builtin_memset(s->slots, 0, sizeof(s->slots));
	if (bpf_core_read(&shift, sizeof(shift), &inner->shift) ||
	    bpf_probe_read_kernel(s->slots, bytes,
				  (void *)inner + bpf_core_field_offset(inner->slots)))
		return 0;
	return owner_entry((s->index >> (shift & 63)) & (bytes / 8 - 1), user);
}

__noinline int owner_look(u32 user)
{
	struct owner_search *s = scratch_at(&owner_search, user);
	struct mem_cgroup *group;
	u64 entry;

	if (!owners || !s)
		return 0;
	entry = s->head;
	for (u32 i = 0; i < OWNER_LEVELS && xa_is_inner(entry); i++)
		entry = owner_below(entry, user);
	if (!xa_is_page(entry))
		return 0;
	group = memcg_of_page((void *)entry);
	if (!group)
		return 0;
	s->looked++;
	for (u32 i = 0; i < OWNER_GROUPS; i++) {
		if (s->group[i] && s->group[i] != group)
			continue;
		s->group[i] = group;
		s->pages[i]++;
		break;
	}
	return 0;
}

inline_ void find_owner(struct cachefiles_file *f, struct address_space *mapping, const u32 user)
{
	struct owner_search *s = scratch_at(&owner_search, user);
	u64 pages = (f->bytes >> 12) + 1, most = 0;
	struct mem_cgroup *group = NULL;

	if (!owners || !s || !bpf_core_type_exists(struct mem_cgroup))
		return;
	__builtin_memset(s, 0, sizeof(*s));
	s->head = (u64)BPF_CORE_READ(mapping, i_pages.xa_head);
	for (u32 i = 0; i < OWNER_LOOKS; i++) {
		s->index = pages < OWNER_LOOKS ? i : pages / OWNER_LOOKS * i;
		if (i >= pages || i >= f->pages)
			break;
		owner_look(user);
	}
	for (u32 i = 0; i < OWNER_GROUPS; i++) {
		if (s->pages[i] <= most)
			continue;
		most = s->pages[i];
		group = s->group[i];
	}
	if (!group)
		return;
	f->owner = memcg_cgroup(group);
	f->owned = most;
	f->looked = s->looked;
}

#endif
