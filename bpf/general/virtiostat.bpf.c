// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* virtiostat: buffers that drivers queue to virtio devices. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/program.bpf.h"
#include "general/virtiostat.h"

CPU_TABLE(queues, struct virtiostat_key, struct virtiostat_value)

/*
 * Limits of entries read in one buffer: a disk request has
 * slightly more than 254 at most, a network packet 19.
 */
#define MOST_SEVERAL 264
#define MOST_ONE 40

/* Flag bits of scatterlist.page_link. */
#define SG_CHAIN 1UL
#define SG_END 2UL

inline_ void name_queue(struct virtqueue *vq, struct virtiostat_key *key)
{
	key->index = BPF_CORE_READ(vq, index);
	bpf_probe_read_kernel_str(key->queue, sizeof(key->queue), BPF_CORE_READ(vq, name));
	bpf_probe_read_kernel_str(key->device, sizeof(key->device),
				  BPF_CORE_READ(vq, vdev, dev.kobj.name));
	bpf_probe_read_kernel_str(key->driver, sizeof(key->driver),
				  BPF_CORE_READ(vq, vdev, dev.driver, name));
}

/* Lists of segments: first those that the device reads, then those that it writes. */
struct lists {
	struct scatterlist **next; /* NULL: only one list, with `segment` */
	struct scatterlist *segment;
	u32 out, in; /* remaining lists; for a single list, its direction */
};

/* Counts a list entry. Returns the next one; NULL: it was the last. */
inline_ struct scatterlist *add_entry(struct scatterlist *sg, bool out,
				      struct virtiostat_value *sums)
{
	u64 link = BPF_CORE_READ(sg, page_link), bytes;

	if (link & SG_CHAIN)
		return (struct scatterlist *)(link & ~(SG_CHAIN | SG_END));
	bytes = BPF_CORE_READ(sg, length);
	if (out) {
		sums->out_segments++;
		sums->out_bytes += bytes;
	} else {
		sums->in_segments++;
		sums->in_bytes += bytes;
	}
	if (link & SG_END)
		return NULL;
	return (struct scatterlist *)((char *)sg + bpf_core_type_size(struct scatterlist));
}

/* False: there are more than `most` entries. */
static __noinline bool add_lists(struct lists *l, struct virtiostat_value *sums, u32 most)
{
	struct scatterlist *sg = l->segment;
	bool out = l->out;

	for (u32 i = 0; i < most; i++) {
		if (sg) {
			sg = add_entry(sg, out, sums);
			continue;
		}
		if (!l->next || !(l->out + l->in))
			return true;
		out = l->out;
		if (out)
			l->out--;
		else
			l->in--;
		bpf_probe_read_kernel(&sg, sizeof(sg), l->next++);
	}
	return false;
}

inline_ int add(u64 vq, struct lists *l, u32 most)
{
	struct virtiostat_value sums = {}, *v;
	struct virtiostat_key key = {};

	if (!keep_current())
		return 0;
	if (!add_lists(l, &sums, most))
		count(LEDGER_TRUNCATED);
	name_queue((struct virtqueue *)vq, &key);
	v = queues_row(&key);
	if (!v)
		return 0;
	/* Interrupts may update the same row. */
	__sync_fetch_and_add(&v->buffers, 1);
	__sync_fetch_and_add(&v->in_segments, sums.in_segments);
	__sync_fetch_and_add(&v->out_segments, sums.out_segments);
	__sync_fetch_and_add(&v->in_bytes, sums.in_bytes);
	__sync_fetch_and_add(&v->out_bytes, sums.out_bytes);
	return 0;
}

inline_ int add_several(u64 vq, u64 lists, u32 out, u32 in)
{
	struct lists l = { .next = (void *)lists, .out = out, .in = in };

	return add(vq, &l, MOST_SEVERAL);
}

inline_ int add_one(u64 vq, u64 segment, bool out)
{
	struct lists l = { .segment = (void *)segment, .out = out };

	return add(vq, &l, MOST_ONE);
}

/* Older verifiers reject reading an argument of type pointer to pointer from the context. */
TRACING(on_sgs, "fentry/virtqueue_add_sgs")
{
	u64 lists = 0;

	bpf_get_func_arg(ctx, 1, &lists);
	return add_several(ctx[0], lists, ctx[2], ctx[3]);
}

SEC("kprobe/virtqueue_add_sgs")
int on_sgs_kprobe(struct pt_regs *ctx)
{
	return add_several(PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx),
			   PT_REGS_PARM4(ctx));
}

FUNC_ENTRY(on_out, virtqueue_add_outbuf, add_one(arg[0], arg[1], true))
FUNC_ENTRY(on_in, virtqueue_add_inbuf, add_one(arg[0], arg[1], false))
FUNC_ENTRY(on_in_ctx, virtqueue_add_inbuf_ctx, add_one(arg[0], arg[1], false))
FUNC_ENTRY(on_out_mapped, virtqueue_add_outbuf_premapped, add_one(arg[0], arg[1], true))
FUNC_ENTRY(on_in_mapped, virtqueue_add_inbuf_premapped, add_one(arg[0], arg[1], false))
FUNC_ENTRY(on_in_clean, virtqueue_add_inbuf_cache_clean, add_one(arg[0], arg[1], false))
