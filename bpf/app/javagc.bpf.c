// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* javagc: garbage collections of Java programs. */
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/targets/roles.bpf.h"
#include "app/javagc.h"

RECORD(javagc_event);

/* A collection is done by one thread of the virtual machine from start to end. */
struct collection {
	struct {
		u64 start;
		u64 depth; /* pools start one after the other, and end in the same way */
	} kinds[JAVAGC_KINDS];
};

TASK_SLOT(struct collection);

OPT_OR(__u64, min_ns, 1000000);

inline_ int gc_begin(u32 kind)
{
	struct collection *c = wanted_slot();

	if (c && !c->kinds[kind].depth++)
		c->kinds[kind].start = bpf_ktime_get_ns();
	return 0;
}

inline_ int gc_end(u32 kind)
{
	u64 now = bpf_ktime_get_ns(), pause;
	struct collection *c;
	struct javagc_event *e;

	if (!keep_current())
		return 0;
	c = current_slot(false);
	if (!c || !c->kinds[kind].depth)
		return counted(LEDGER_UNMATCHED);
	if (--c->kinds[kind].depth)
		return 0;
	if (kind == JAVAGC_POOLS && c->kinds[JAVAGC_PAUSE].depth)
		return 0; /* part of that pause */
	pause = since(c->kinds[kind].start, now);
	if (pause < min_ns)
		return filtered();
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = c->kinds[kind].start;
	e->pause_ns = pause;
	e->cpu = bpf_get_smp_processor_id();
	e->kind = kind;
	identify_current(&e->who);
	return emit_end(e);
}

inline_ int gc_event(struct pt_regs *ctx, u32 role)
{
	switch (role) {
	case JAVAGC_BEGIN:
		return gc_begin(JAVAGC_PAUSE);
	case JAVAGC_END:
		return gc_end(JAVAGC_PAUSE);
	case JAVAGC_POOL_BEGIN:
		return gc_begin(JAVAGC_POOLS);
	case JAVAGC_POOL_END:
		return gc_end(JAVAGC_POOLS);
	}
	return 0;
}

ON_USER_FUNCTION("target/usdt", target_usdt, gc_event(ctx, role_of(ctx)))
ON_USER_FUNCTION("target/user", target_user, gc_event(ctx, role_of(ctx)))
