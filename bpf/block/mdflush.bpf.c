// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* mdflush: flushes that reach software RAID. */
#include "lib/block/bio.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "block/mdflush.h"

RECORD(mdflush_event);

OPT(bool, with_latency);

struct flush {
	u64 start;
	struct task_id who;
};

MAP(HASH, flushes, 1, u64, struct flush); /* by the bio's address */

/* md0, or for partitions md_d0, or a name with this prefix: no other driver uses it. */
inline_ bool on_md(struct bio *bio)
{
	char name[2] = {};

	bpf_core_read(name, sizeof(name), &bio_disk(bio)->disk_name);
	return name[0] == 'm' && name[1] == 'd';
}

inline_ int show(struct bio *bio, const struct task_id *who, u64 now, u64 latency)
{
	struct mdflush_event *e = emit_begin(sizeof(*e));

	if (!e)
		return 0;
	e->head.time_ns = now;
	e->latency_ns = latency;
	e->disk = disk_number(bio_disk(bio));
	e->who = *who;
	return emit_end(e);
}

TRACING(on_bio, "tp_btf/block_bio_queue")
{
	struct bio *bio = queued_bio(ctx);
	struct flush f = {};
	u64 key = (u64)bio;

	if (!(bio->bi_opf & 1U << __REQ_PREFLUSH) || !on_md(bio))
		return 0;
	if (!bio_on_wanted_disk(bio))
		return filtered();
	if (!keep_current())
		return 0;
	identify_current(&f.who);
	f.start = bpf_ktime_get_ns();
	if (!with_latency)
		return show(bio, &f.who, f.start, 0);
	/* Its end was not seen: md has passed the bio itself on to one of its disks. */
	if (bpf_map_lookup_elem(&flushes, &key))
		count(LEDGER_UNMATCHED);
	return map_put(&flushes, &key, &f);
}

TRACING(on_end, "tp_btf/block_bio_complete")
{
	struct bio *bio = (struct bio *)ctx[1];
	u64 key = (u64)bio, now;
	struct flush *f = bpf_map_lookup_elem(&flushes, &key);

	if (!f)
		return 0;
	now = bpf_ktime_get_ns();
	show(bio, &f->who, now, since(f->start, now));
	bpf_map_delete_elem(&flushes, &key);
	return 0;
}
