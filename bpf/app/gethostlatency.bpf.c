// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* gethostlatency: time that programs wait for host name resolution. */
#include "lib/targets/call.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/program.bpf.h"
#include "app/gethostlatency.h"

RECORD(gethostlatency_event);

struct lookup {
	struct call call;
	u64 name_at;  /* address in user memory */
	u64 found_at; /* where the _r functions store their result */
	struct gethostlatency_event e;
	char name[HOST_BYTES + 8];
};

TASK_SLOT(struct lookup);

OPT(__u64, min_ns);
OPT(bool, failed_only);

/* One byte more than a name can have, to detect truncation. */
inline_ bool read_name(struct lookup *l)
{
	long bytes = bpf_probe_read_user_str(l->name, HOST_BYTES + 1, (void *)l->name_at);

	if (bytes <= 0)
		return false;
	l->e.named = 1;
	l->e.host.bytes = bytes - 1;
	return true;
}

inline_ int begin(struct pt_regs *ctx, u64 name, u64 found, u8 function)
{
	struct lookup *l = wanted_slot();

	if (!l || !call_begin(&l->call, ctx))
		return 0;
	__builtin_memset(&l->e, 0, sizeof(l->e));
	l->e.function = function;
	l->name_at = name;
	l->found_at = found;
	/* Read it now: the caller may let the result overwrite the name. If it is
	 * not in memory yet, it is read again when the function has accessed it. */
	if (name)
		read_name(l);
	return 0;
}

/* getaddrinfo() returns 0 or an EAI number; others a pointer; the _r functions 0 or an errno. */
inline_ bool has_failed(struct lookup *l, u64 returned)
{
	u64 found = 0;

	if (l->e.function == GETHOSTBYNAME || l->e.function == GETHOSTBYNAME2) {
		l->e.result = returned ? 0 : -1;
		return !returned;
	}
	l->e.result = (s32)returned;
	if (l->e.result || l->e.function == GETADDRINFO)
		return l->e.result != 0;
	/* No error, but the host may still not exist. */
	return l->found_at && !bpf_probe_read_user(&found, sizeof(found), (void *)l->found_at) &&
	       !found;
}

inline_ int end(struct pt_regs *ctx)
{
	struct lookup *l = current_slot(false);
	u32 bytes;

	/* No start: filtered, not tracked (counted there), or an inner call. */
	if (!l || !call_end(&l->call, ctx))
		return 0;
	l->e.head.time_ns = l->call.start;
	l->e.latency_ns = since(l->call.start, bpf_ktime_get_ns());
	l->call.start = 0;
	l->e.failed = has_failed(l, PT_REGS_RC(ctx));
	if (l->e.latency_ns < min_ns || (failed_only && !l->e.failed))
		return filtered();
	if (l->name_at && ((!l->e.named && !read_name(l)) || l->e.host.bytes >= HOST_BYTES))
		count(LEDGER_TRUNCATED);
	identify_current(&l->e.who);
	l->e.host.at = sizeof(l->e);
	bytes = l->e.host.bytes;
	barrier_var(bytes);
	if (bytes > HOST_BYTES)
		bytes = HOST_BYTES;
	emit_copy(&l->e, sizeof(l->e) + bytes);
	return 0;
}

ON_USER_FUNCTION("uretprobe/same", on_found, end(ctx))

#define LOOKUP(function, n, id, found)                                   \
	ON_USER_FUNCTION("uprobe/libc:" #function "/" #n, on_##function, \
			 begin(ctx, PT_REGS_PARM1(ctx), found, id))

LOOKUP(getaddrinfo, 1, GETADDRINFO, 0)
LOOKUP(gethostbyname, 1, GETHOSTBYNAME, 0)
LOOKUP(gethostbyname2, 1, GETHOSTBYNAME2, 0)
LOOKUP(gethostbyname_r, 5, GETHOSTBYNAME_R, PT_REGS_PARM5(ctx))
LOOKUP(gethostbyname2_r, 6, GETHOSTBYNAME2_R, PARM6(ctx))
