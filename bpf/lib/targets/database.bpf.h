/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queries of MySQL, MariaDB and PostgreSQL, from the server's receipt
 * of a query until it waits for the next one. The program that includes
 * this has a TASK_SLOT that begins with struct query, and defines query_slot(),
 * query_text() and query_ended().
 *
 * Contexts: the running task, outside of interrupts, preemptible.
 */
#ifndef CORETAP_DATABASE_BPF_H
#define CORETAP_DATABASE_BPF_H

#include "lib/targets/call.bpf.h"
#include "lib/targets/database.h"
#include "lib/core/filter.bpf.h"
#include "lib/targets/roles.bpf.h"

OPT(bool, all_commands);

/* Per thread of MySQL, or process of PostgreSQL. */
struct query {
	struct call call; /* MySQL: dispatch_command() */
	u64 start;        /* 0: none in progress */
	u64 ran;          /* PostgreSQL: when its last part ended */
	u32 executed;     /* PostgreSQL: a part was started, which may fail */
	u32 command;
	u32 server;
	u32 pad;
};

#define DB_TEXT_ENDS ~0ULL /* at a NUL; its length is not known */

/* The text is at `from`; 0: no text, or none yet. */
inline_ void query_text(struct query *q, u64 from, u64 bytes);
inline_ void query_ended(struct query *q, u64 latency);

/* The running task's slot. */
inline_ struct query *query_slot(bool make);

inline_ void db_end(struct query *q, u64 now)
{
	query_ended(q, since(q->start, now));
	q->start = 0;
}

inline_ bool db_wants(u32 command)
{
	return all_commands || command == DB_QUERY || command == DB_PREPARE ||
	       command == DB_EXECUTE || command == DB_BULK_EXECUTE;
}

inline_ int db_dispatch(struct pt_regs *ctx, u32 command, u64 from, u64 bytes)
{
	struct query *q;

	if (!db_wants(command) || !keep_current())
		return 0;
	q = query_slot(true);
	if (!q || !call_begin(&q->call, ctx))
		return 0;
	q->start = q->call.start;
	q->command = command;
	q->server = DB_MYSQL;
	/* An executed statement is named by a number; its text comes later. */
	query_text(q, command == DB_QUERY || command == DB_PREPARE ? from : 0, bytes);
	return 0;
}

/* COM_DATA is a union; members of commands with a text start with the text and its length. */
inline_ int db_dispatch_data(struct pt_regs *ctx)
{
	struct {
		u64 text;
		u32 bytes;
		u32 pad;
	} data = {};

	bpf_probe_read_user(&data, sizeof(data), (void *)PT_REGS_PARM2(ctx));
	return db_dispatch(ctx, (u32)PT_REGS_PARM3(ctx), data.text, data.bytes);
}

inline_ int db_statement(struct pt_regs *ctx)
{
	struct query *q = query_slot(false);

	if (q && q->start && q->server == DB_MYSQL &&
	    (q->command == DB_EXECUTE || q->command == DB_BULK_EXECUTE))
		query_text(q, PT_REGS_PARM3(ctx), (u32)PT_REGS_PARM4(ctx));
	return 0;
}

/*
 * A backend reports its activity: with a text when a message of the client arrives (a simple
 * query; or parse, bind and execute one after another, which are parts of one query), without one
 * when it waits for the next. A message after an executed part is another query (a pipeline).
 */
inline_ int db_activity(struct pt_regs *ctx)
{
	u64 text = PT_REGS_PARM2(ctx), now = bpf_ktime_get_ns();
	struct query *q = query_slot(false);

	if (q && q->start && (!text || q->ran)) {
		if (!q->executed)
			q->command = DB_PARSE;
		db_end(q, text ? q->ran : now);
	}
	if (!text || !keep_current())
		return 0;
	q = query_slot(true);
	if (!q)
		return 0;
	if (!q->start) {
		q->start = now;
		q->ran = 0;
		q->executed = false;
		q->command = DB_QUERY;
		q->server = DB_POSTGRES;
	}
	query_text(q, text, DB_TEXT_ENDS);
	return 0;
}

/* PortalRun() does not return if the statement fails. */
inline_ int db_portal(void)
{
	struct query *q = query_slot(false);

	if (q)
		q->executed = true;
	return 0;
}

inline_ int db_entry(struct pt_regs *ctx, u32 role)
{
	switch (role) {
	case DB_DISPATCH:
		return db_dispatch(ctx, (u32)PT_REGS_PARM1(ctx), PT_REGS_PARM3(ctx),
				   (u32)PT_REGS_PARM4(ctx));
	case DB_DISPATCH_DATA:
		return db_dispatch_data(ctx);
	case DB_STATEMENT:
		return db_statement(ctx);
	case DB_ACTIVITY:
		return db_activity(ctx);
	case DB_PORTAL:
		return db_portal();
	}
	return 0;
}

inline_ int db_return(struct pt_regs *ctx, u32 role)
{
	struct query *q = query_slot(false);

	if (!q || !q->start)
		return 0;
	if (role == DB_PORTAL) {
		q->ran = bpf_ktime_get_ns();
		return 0;
	}
	if (!call_end(&q->call, ctx))
		return 0;
	q->call.start = 0;
	db_end(q, bpf_ktime_get_ns());
	return 0;
}

ON_USER_FUNCTION("target/user", target_user, db_entry(ctx, role_of(ctx)))
ON_USER_FUNCTION("target/user.return", target_user_return, db_return(ctx, role_of(ctx)))

#endif
