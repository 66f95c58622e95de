// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* scsilatency: latency of SCSI commands. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/block/block_span.bpf.h"
#include "lib/block/command.bpf.h"
#include "block/scsilatency.h"

OPT(bool, by_device);
OPT(bool, by_result);
OPT(bool, errors_only);
OPT(bool, one_device);
OPT(__u32, wanted_host);
OPT(__u32, wanted_channel);
OPT(__u32, wanted_target);
OPT(__u32, wanted_lun);

/* Offsets of members of the records; of a tag: 0 if this kernel's records have none. */
OPT(__u32, at_place); /* first members of all records */
OPT(__u32, at_opcode);
OPT(__u32, at_tag);
OPT(__u32, at_bytes);
OPT(__u32, at_end_tag);
OPT(__u32, at_end_bytes);
OPT(__u32, at_end_result);
OPT(__u32, at_error_tag);
OPT(__u32, at_error_bytes);

struct id {
	struct scsi_place device;
	u32 tag;
	u8 bytes[SCSI_CDB];
};

struct start {
	u64 ns;
	u64 opcode;
};

COMMANDS(struct id, struct start)

HISTOGRAM(latencies, struct scsilatency_key)

inline_ bool span_queues(void)
{
	return false;
}

/* With a filter by task: whether the request last issued by the task is wanted. */
struct issued {
	u64 wanted;
};

TASK_SLOT(struct issued);

/*
 * With a filter by task, as a kernel thread may dispatch the command:
 * the request is issued just before, and its submitter is known.
 */
TRACING(on_issue, "tp_btf/block_rq_issue")
{
	struct request *rq = issue_rq(ctx);
	struct issued *i = current_slot(true);

	if (i)
		i->wanted = wanted(rq, rq_slot(rq));
	return 0;
}

inline_ void read_id(void *ctx, struct id *id, u32 tag, u32 bytes)
{
	u32 place = 0, length;

	record_read(&id->device, sizeof(id->device), ctx, at_place);
	if (tag)
		record_read(&id->tag, sizeof(id->tag), ctx, tag);
	record_read(&place, sizeof(place), ctx, bytes);
	length = place >> 16 & 0xff;
	if (length > SCSI_CDB)
		length = SCSI_CDB;
	record_read(id->bytes, length, ctx, place & 0xffff);
}

inline_ bool wanted_device(const struct scsi_place *d)
{
	return !one_device || (d->host == wanted_host && d->channel == wanted_channel &&
			       d->target == wanted_target && d->lun == wanted_lun);
}

SEC("tracepoint/scsi/scsi_dispatch_cmd_start")
int on_start(void *ctx)
{
	struct issued *i = filter.on ? current_slot(false) : NULL;
	struct start s = {};
	struct id id = {};

	read_id(ctx, &id, at_tag, at_bytes);
	if (!wanted_device(&id.device) || (filter.on && !(i && i->wanted)))
		return filtered();
	record_read(&s.opcode, sizeof(u32), ctx, at_opcode);
	s.ns = bpf_ktime_get_ns();
	command_start(&id, &s);
	return 0;
}

inline_ int end(void *ctx, u32 result)
{
	struct scsilatency_key key = {};
	struct start s = {};
	struct id id = {};

	read_id(ctx, &id, at_end_tag, at_end_bytes);
	if (!command_end(&id, &s))
		return 0;
	if (errors_only && !result)
		return filtered();
	key.opcode = s.opcode;
	if (by_device)
		key.device = id.device;
	if (by_result)
		key.result = result;
	return latencies_add(&key, since(s.ns, bpf_ktime_get_ns()));
}

SEC("tracepoint/scsi/scsi_dispatch_cmd_done")
int on_done(void *ctx)
{
	u32 result = 0;

	record_read(&result, sizeof(result), ctx, at_end_result);
	return end(ctx, result);
}

SEC("tracepoint/scsi/scsi_dispatch_cmd_timeout")
int on_timeout(void *ctx)
{
	return end(ctx, SCSI_TIMED_OUT);
}

/* The host did not accept it: it is dispatched again later. */
SEC("tracepoint/scsi/scsi_dispatch_cmd_error")
int on_error(void *ctx)
{
	struct id id = {};

	read_id(ctx, &id, at_error_tag, at_error_bytes);
	bpf_map_delete_elem(&commands, &id);
	return 0;
}
