/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files seen in user stacks that the loader has not read: their paths, once each.
 *
 * Contexts: as current_walk() allows.
 */
#ifndef CORETAP_UNREAD_FILE_BPF_H
#define CORETAP_UNREAD_FILE_BPF_H

#include "lib/core/exchange.bpf.h"
#include "lib/paths/path.bpf.h"
#include "lib/core/text.bpf.h"
#include "lib/stack/walk.bpf.h"

#define UNREAD_AGAIN_NS 1000000000ULL /* the loader may have had no room for it before */

MAP(LRU_HASH, unwind_told, 1024, struct unwind_file_key, u64);

struct unread_record {
	u64 used; /* in use by a program, which one of another task may have preempted */
	struct walked walked;
	struct unwind_unread head __attribute__((aligned(8)));
	char text[PATH_ROOM];
};

SCRATCH(unwind_unread, struct unread_record);

inline_ void unwind_send_unread(struct walk *w, struct unread_record *r)
{
	u32 used;

	__builtin_memset(&r->head, 0, sizeof(r->head));
	r->head.mark = UNWIND_UNREAD;
	r->head.tgid = current_tgid();
	r->head.kind = file_path(&r->walked, r->text, (struct file *)w->unread);
	used = walked_bytes(&r->walked);
	r->head.text.at = sizeof(r->head);
	r->head.text.bytes = used;
	bpf_ringbuf_output(&events, &r->head, sizeof(r->head) + used, BPF_RB_FORCE_WAKEUP);
}

/*
 * The path lets the loader find the file after the process, which may be
 * short-lived, has exited. A separate function, as the verifier needs it.
 */
__noinline int unwind_tell_unread(void)
{
	struct walk *w = current_walk();
	struct unread_record *r;
	u64 *told, now;

	/* Up to 6.7 the verifier checks this function even if it is not called. */
	if (!unwind_tables || !w)
		return 0;
	now = bpf_ktime_get_ns();
	told = bpf_map_lookup_elem(&unwind_told, &w->unread_key);
	if (told && now - *told < UNREAD_AGAIN_NS)
		return 0;
	r = scratch(&unwind_unread);
	if (!r || exchange(&r->used, true))
		return 0; /* reported with the next stack */
	if (!bpf_map_update_elem(&unwind_told, &w->unread_key, &now, BPF_ANY))
		unwind_send_unread(w, r);
	*(volatile u64 *)&r->used = false;
	return 0;
}

#endif
