/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text that belongs to the key of a row of an aggregate, such as a file's path: sent once,
 * when the row is created, so that a row only uses memory for its numbers. If the ring buffer
 * is full it is sent with a later event, and nothing is lost: the counts are in the row.
 *
 * Contexts: tasks; send_row_name() all but NMIs.
 */
#ifndef CORETAP_ROW_TEXT_BPF_H
#define CORETAP_ROW_TEXT_BPF_H

#include "lib/paths/path.bpf.h"
#include "lib/core/text.bpf.h"

struct row_text_record {
	struct walked walked;
	u64 file, task; /* addresses, for a walk in a separate function */
	struct row_text head __attribute__((aligned(8))); /* a kernel address is copied whole */
	char text[PATH_ROOM];
};

SCRATCH(row_texts, struct row_text_record);

inline_ bool key_row_text(struct row_text_record *r, const void *key, const u32 bytes)
{
	if (!r || bytes > ROW_TEXT_KEY)
		return false;
	__builtin_memset(&r->head, 0, sizeof(r->head));
	__builtin_memcpy(r->head.key, key, bytes);
	return true;
}

/*
 * Sends for the row with the key in this record the path of the file as `task` sees it, or its
 * name if it is not in a directory. False: the buffer was full; send it again with the next event.
 */
inline_ bool send_keyed_path(struct row_text_record *r, struct file *file, struct task_struct *task)
{
	u32 used;

	r->head.kind = file_path_of(&r->walked, r->text, file, task);
	used = walked_bytes(&r->walked);
	r->head.text.at = sizeof(r->head);
	r->head.text.bytes = used;
	return emit_copy_if_room(&r->head, sizeof(r->head) + used);
}

inline_ bool send_row_path(const void *key, const u32 bytes, struct file *file)
{
	struct row_text_record *r = scratch(&row_texts);

	return key_row_text(r, key, bytes) && send_keyed_path(r, file, current_task());
}

#define ROW_NAME 128 /* of a slab cache or a type, including the terminator */

/*
 * A name in kernel memory; the key is an address. Built
 * on the stack, as it may also be sent from interrupts.
 */
inline_ bool send_row_name(u64 key, const char *name)
{
	struct {
		struct row_text head;
		char text[ROW_NAME];
	} __attribute__((aligned(8))) r; /* a kernel address is copied whole */
	long bytes;

	__builtin_memset(&r, 0, sizeof(r));
	*(u64 *)r.head.key = key;
	r.head.kind = PATH_KIND_NAME;
	bytes = bpf_probe_read_kernel_str(r.text, sizeof(r.text), name);
	if (bytes <= 0 || bytes > ROW_NAME)
		return false;
	r.head.text.at = sizeof(r.head);
	r.head.text.bytes = bytes - 1;
	return emit_copy_if_room(&r, sizeof(r.head) + bytes);
}

#endif
