// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* nvmelatency: latency of NVMe commands. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/block/block_span.bpf.h"
#include "lib/block/command.bpf.h"
#include "block/nvmelatency.h"

OPT(bool, with_admin);
OPT(bool, by_queue);
OPT(bool, by_status);

/* Offsets of members of the two records. */
OPT(__u32, at_disk);
OPT(__u32, at_controller);
OPT(__u32, at_queue);
OPT(__u32, at_opcode);
OPT(__u32, at_start_id);
OPT(__u32, at_end_controller);
OPT(__u32, at_end_queue);
OPT(__u32, at_end_id);
OPT(__u32, at_end_status);

/* Bits of the tag in a command's id; the rest counts uses of the tag (e7006de6c238). */
#define TAG_MASK 0xfff

struct id {
	u32 controller, queue, tag, pad;
};

struct start {
	u64 ns;
	u32 opcode;
	u32 pad;
	char disk[NVME_DISK_NAME];
};

COMMANDS(struct id, struct start)

HISTOGRAM(latencies, struct nvmelatency_key)

inline_ bool span_queues(void)
{
	return false;
}

/* With a filter by task: the command prepared by the task, until its request is issued. */
struct prepared {
	struct id id;
	u64 set;
};

TASK_SLOT(struct prepared);

inline_ struct id read_id(void *ctx, u32 controller, u32 queue, u32 tag)
{
	struct id id = {};

	record_read(&id.controller, sizeof(u32), ctx, controller);
	record_read(&id.queue, sizeof(u32), ctx, queue);
	id.tag = record_u16(ctx, tag) & TAG_MASK;
	return id;
}

SEC("tracepoint/nvme/nvme_setup_cmd")
int on_setup(void *ctx)
{
	struct id id = read_id(ctx, at_controller, at_queue, at_start_id);
	struct prepared *p;
	struct start s = {};

	if (!id.queue && !with_admin)
		return filtered();
	record_read(s.disk, sizeof(s.disk), ctx, at_disk);
	record_read(&s.opcode, sizeof(u8), ctx, at_opcode);
	s.ns = bpf_ktime_get_ns();
	command_start(&id, &s);
	p = filter.on ? current_slot(true) : NULL;
	if (p)
		*p = (struct prepared){ .id = id, .set = 1 };
	return 0;
}

/*
 * With a filter by task, as a kernel thread may prepare the command: the
 * driver issues the request next, and the submitter of that is known.
 */
TRACING(on_issue, "tp_btf/block_rq_issue")
{
	struct request *rq = issue_rq(ctx);
	struct prepared *p = current_slot(false);

	if (!p || !p->set)
		return 0;
	p->set = 0;
	if (wanted(rq, rq_slot(rq)))
		return 0;
	bpf_map_delete_elem(&commands, &p->id);
	return filtered();
}

SEC("tracepoint/nvme/nvme_complete_rq")
int on_complete(void *ctx)
{
	struct nvmelatency_key key = {};
	struct start s = {};
	struct id id = read_id(ctx, at_end_controller, at_end_queue, at_end_id);

	if (!command_end(&id, &s))
		return 0;
	bpf_probe_read_kernel_str(key.disk, sizeof(key.disk), s.disk);
	key.controller = id.controller;
	key.opcode = s.opcode;
	key.admin = !id.queue;
	if (by_queue)
		key.queue = id.queue;
	if (by_status)
		key.status = record_u16(ctx, at_end_status);
	return latencies_add(&key, since(s.ns, bpf_ktime_get_ns()));
}
