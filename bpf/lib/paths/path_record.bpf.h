/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events followed by the path of a file.
 *
 * Contexts: tasks.
 */
#ifndef CORETAP_PATH_RECORD_BPF_H
#define CORETAP_PATH_RECORD_BPF_H

#include "lib/paths/path.bpf.h"
#include "lib/core/text.bpf.h"

#define PATH_RECORD(name, event_type) \
	struct name {                 \
		struct walked walked; \
		event_type event;     \
		char text[PATH_ROOM]; \
	}

/* Emits an event with the walked path as text, `kind`; a macro, as events differ in type.
 */
#define emit_path(r, kind)                                           \
	do {                                                         \
		u32 bytes_;                                          \
                                                                     \
		(r)->event.path_kind = count_cut(kind);              \
		bytes_ = walked_bytes(&(r)->walked);                 \
		(r)->event.path.at = sizeof((r)->event);             \
		(r)->event.path.bytes = bytes_;                      \
		emit_copy(&(r)->event, sizeof((r)->event) + bytes_); \
	} while (0)

#endif
