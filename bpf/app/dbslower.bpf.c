// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* dbslower: slow database queries. */
#include "lib/core/long_record.bpf.h"
#include "lib/core/text.bpf.h"
#include "lib/targets/database.bpf.h"
#include "app/dbslower.h"

RECORD(dbslower_event);

OPT_OR(__u64, min_ns, 1000000);

struct timed_query {
	struct query query;
	u32 is_long;
	u32 has_long;
	/* Read at the start: servers reuse the memory before the query is done. */
	struct dbslower_event e;
	char text[QUERY_SHORT + 8];
};

TASK_SLOT(struct timed_query);

inline_ struct query *query_slot(bool make)
{
	return (struct query *)current_slot(make);
}

struct long_query {
	struct dbslower_event e;
	char text[QUERY_MOST + 8];
};

LONG_RECORDS(struct long_query)

OPT_OR(__u64, text_most, QUERY_MOST); /* maximum bytes of a text shown */

/* Number of bytes read; < 0: unreadable. */
inline_ s64 read_text(char *to, const u32 most, u64 from, u64 bytes, bool *cut)
{
	u64 n = bytes;

	if (bytes == DB_TEXT_ENDS)
		return text_user(to, most, (void *)from, cut);
	*cut = n > most;
	barrier_var(n);
	if (n > most)
		n = most;
	return bpf_probe_read_user(to, n, (void *)from) ? -1 : (s64)n;
}

inline_ void query_text(struct query *query, u64 from, u64 bytes)
{
	struct timed_query *q = (struct timed_query *)query;
	struct long_query *l;
	bool cut = false;
	s64 n = -1;

	q->is_long = 0;
	if (from)
		n = read_text(q->text, QUERY_SHORT, from, bytes, &cut);
	if (cut && text_most > QUERY_SHORT) {
		l = long_record(true);
		if (l) {
			q->is_long = q->has_long = 1;
			n = read_text(l->text, QUERY_MOST, from, bytes, &cut);
		}
	}
	q->e.named = n >= 0;
	if (n > (s64)text_most) {
		n = text_most;
		cut = true;
	}
	q->e.text.bytes = n > 0 ? n : 0;
	q->e.cut = cut;
}

inline_ void query_emit(struct timed_query *q)
{
	u32 bytes = q->e.text.bytes;
	struct long_query *l;

	if (!q->is_long) {
		barrier_var(bytes);
		if (bytes <= QUERY_SHORT)
			emit_copy(&q->e, sizeof(q->e) + bytes);
		return;
	}
	l = long_record(false);
	barrier_var(bytes);
	if (!l || bytes > QUERY_MOST)
		return;
	l->e = q->e;
	emit_copy(&l->e, sizeof(l->e) + bytes);
}

inline_ void query_ended(struct query *query, u64 latency)
{
	struct timed_query *q = (struct timed_query *)query;

	if (latency < min_ns) {
		count(LEDGER_FILTERED);
	} else {
		q->e.head.time_ns = query->start;
		q->e.latency_ns = latency;
		q->e.command = query->command;
		q->e.server = query->server;
		q->e.text.at = sizeof(q->e);
		identify_current(&q->e.who);
		if (q->e.cut)
			count(LEDGER_TRUNCATED);
		query_emit(q);
	}
	if (q->has_long)
		long_record_done();
	q->has_long = 0;
}
