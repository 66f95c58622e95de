// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* filegone: removed or renamed files and directories. */
#include "lib/fs/removal.bpf.h"
#include "lib/syscall/call_slot.bpf.h"
#include "fs/filegone.h"

RECORD(filegone_event);

OPT(bool, failed_only);

CALL_SLOT(struct removal)

struct gone_record {
	struct given_texts texts;
	struct filegone_event event;
	char text[2 * GIVEN_ROOM];
};

SCRATCH(records, struct gone_record);

inline_ int removal_begins(struct removal *r)
{
	struct removal *call = wanted_slot();

	if (call)
		*call = *r;
	return 0;
}

ON_ENTRY(rmdir, removal_entered(REMOVAL_RMDIR, AT_CWD, ctx->args[0], 0, 0, 0))

UNPREEMPTED(on_gone, REMOVAL_EXITS ",sys_exit_rmdir", struct exit_ctx)
{
	u64 start;
	struct removal *call = call_ends(&start);
	struct filegone_event *e;
	struct gone_record *r;

	r = call ? scratch(&records) : NULL;
	if (!r)
		return 0;
	e = &r->event;
	e->head.time_ns = start;
	e->latency_ns = since(start, bpf_ktime_get_ns());
	if (failed_only != ctx->ret < 0)
		return filtered();
	e->ret = ctx->ret;
	e->call = call->call;
	e->flags = call->flags;
	identify_current(&e->who);
	r->texts.used = 0;
	read_given_path(&e->path, &r->texts, r->text, sizeof(*e), 0, call->name, call->dfd,
			ctx->ret);
	e->to.what = 0;
	if (call->call >= REMOVAL_RENAME)
		read_given_path(&e->to, &r->texts, r->text, sizeof(*e), 1, call->to, call->to_dfd,
				ctx->ret);
	emit_copy(e, given_size(&r->texts, sizeof(*e), 2));
	return 0;
}
