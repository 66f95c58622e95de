// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* dcsnoop: lookups in the directory-entry cache, by name. */
#include "lib/fs/look_up.bpf.h"
#include "lib/paths/path.bpf.h"
#include "lib/core/text.bpf.h"
#include "fs/dcsnoop.h"

RECORD(dcsnoop_event);

OPT(bool, all_lookups);
OPT(bool, full_path);

#define NAME_MOST 255

struct lookup_record {
	struct walked walked;
	volatile u32 used; /* of the text; read back, so that the verifier does not track it */
	u32 pad;
	struct dcsnoop_event event;
	char text[PATH_NAME + PATH_ROOM];
};

SCRATCH(records, struct lookup_record);

inline_ int looked_up(struct nameidata *walk, u64 found)
{
	struct dcsnoop_event *e;
	const unsigned char *name;
	struct lookup_record *r;
	u64 used;
	u32 bytes;
	char *to;

	if (walk_is_repeated(found) || (found && !all_lookups) || !keep_current())
		return 0;
	r = scratch(&records);
	if (!r)
		return 0;
	e = &r->event;
	e->head.time_ns = bpf_ktime_get_ns();
	e->missed = !found;
	identify_current(&e->who);
	/* The component is not terminated: the rest of the path follows. */
	name = BPF_CORE_READ(walk, last.name);
	bytes = BPF_CORE_READ(walk, last.len) & NAME_MOST;
	if (bpf_probe_read_kernel(r->text, bytes, name))
		bytes = 0;
	e->name.at = sizeof(*e);
	e->name.bytes = bytes;
	e->directory.at = sizeof(*e) + bytes;
	e->directory.bytes = 0;
	e->path_kind = PATH_KIND_NAME;
	r->used = bytes;
	used = r->used;
	if (full_path && used <= NAME_MOST) {
		to = r->text + used;
		barrier_var(to);
		path_walk(&r->walked, to, &walk->path, &current_fs()->root);
		bytes = r->walked.bytes;
		if (!r->walked.nameless && bytes <= PATH_ROOM) {
			e->path_kind = r->walked.cut ? PATH_KIND_CUT : PATH_KIND_WHOLE;
			e->directory.bytes = bytes;
			r->used += bytes;
		}
		if (r->walked.cut)
			count(LEDGER_TRUNCATED);
	}
	used = r->used;
	if (used > NAME_MOST + PATH_ROOM)
		used = 0;
	barrier_var(used);
	emit_copy(e, sizeof(*e) + used);
	return 0;
}

ON_LOOKUPS
