// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* opensnoop: opened files, with the opening task and the result. */
#include "lib/paths/early_path.bpf.h"
#include "lib/paths/path.bpf.h"
#include "lib/core/since.bpf.h"
#include "lib/stack/task_walk.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "lib/syscall/call_slot.bpf.h"
#include "syscall/opensnoop.h"

RECORD(opensnoop_event);

OPT(bool, failed_only);
OPT(bool, full_path);

/* Matches any: flags under the mask (upper half) have this value; a mask of 0 ends the list.
 */
const volatile __u64 wanted_flags[OPENSNOOP_FLAGS] = {};

#define FLAG_CREAT 00000100
#define FLAG_TRUNC 00001000
#define FLAG_WRONLY 00000001

/*
 * The record of a task's current call, including its path if that is short: it is
 * then sent from here. Most paths are; others are read again when the call ends.
 */
struct open_call {
	u64 start; /* 0: none in progress */
	u64 name;
	struct opensnoop_event event;
	char path[GIVEN_EARLY + 2];
};

CALL_SLOT(struct open_call)

/* The path, followed by components. */
struct open_record {
	struct walked walked;
	struct opensnoop_event event;
	char text[GIVEN_MOST + 9 + PATH_ROOM];
};

SCRATCH_EACH(records, struct open_record, 2); /* of each program */

inline_ bool flags_wanted(u64 flags)
{
	if (!wanted_flags[0])
		return true;
	for (int i = 0; i < OPENSNOOP_FLAGS; i++) {
		u64 wanted = wanted_flags[i];

		if (!wanted)
			break;
		if ((flags & (wanted >> 32)) == (u32)wanted)
			return true;
	}
	return filtered();
}

inline_ int begin(u32 call, s32 dfd, u64 name, u64 flags, u32 mode, u32 what)
{
	struct open_call *c;

	/* Attaching programs opens files, too. */
	if (!tracing_since || !flags_wanted(flags))
		return 0;
	c = current_slot(true);
	if (!c)
		return 0;
	c->name = name;
	c->event.call = call;
	c->event.flags = flags;
	c->event.mode = mode;
	c->event.dfd = dfd;
	if (given_early(c->path, name, &c->event.path))
		what |= OPENSNOOP_GIVEN;
	c->event.what = what;
	c->start = bpf_ktime_get_ns();
	return 0;
}

/* Start of the walk, and the kind of the components; NULL: no walk needed. */
inline_ const struct path *to_walk(const struct opensnoop_event *e, char first, u32 *what)
{
	if (e->ret >= 0) {
		*what = OPENSNOOP_FILE;
		return &current_file(e->ret)->f_path;
	}
	if (!(e->what & OPENSNOOP_GIVEN) || first == '/')
		return NULL;
	*what = OPENSNOOP_BASE;
	return base_of(e->dfd);
}

/* Builds the record again in a buffer for long texts. */
inline_ void emit_long(struct open_call *c, struct open_record *r, bool resolve)
{
	struct opensnoop_event *e = &r->event;
	const struct path *from;
	struct walked *w = &r->walked;
	u32 bytes = 0, what = 0, more = 0;
	bool cut = false;
	s64 n;

	*e = c->event;
	r->text[0] = 0;
	if (c->name) {
		n = text_user(r->text, GIVEN_MOST, (void *)c->name, &cut);
		if (n >= 0) {
			bytes = n & GIVEN_MOST;
			e->what |= cut ? OPENSNOOP_GIVEN | OPENSNOOP_CUT : OPENSNOOP_GIVEN;
		} else if (e->what & OPENSNOOP_GIVEN) {
			bpf_probe_read_kernel(r->text, sizeof(c->path), c->path);
			bytes = e->path.bytes & 127;
		}
		e->path.bytes = bytes;
	}
	if (resolve && (from = to_walk(e, r->text[0], &what))) {
		path_walk(w, r->text + bytes, from, &current_fs()->root);
		more = walked_bytes(w);
		if (!w->nameless) {
			e->what |= w->cut ? what | OPENSNOOP_WALK_CUT : what;
			e->walked.at = sizeof(*e) + bytes;
			e->walked.bytes = more;
		}
	}
	/* If the kernel could not read the name either (EFAULT), the error is the program's. */
	if (cut || e->what & OPENSNOOP_WALK_CUT ||
	    (!(e->what & (OPENSNOOP_GIVEN | OPENSNOOP_FILE)) && e->ret != -EFAULT))
		count(LEDGER_TRUNCATED);
	emit_copy(e, sizeof(*e) + bytes + more);
}

/*
 * A separate function: two programs have it. open_by_handle_at() has no path from the program:
 * only the file's is available.
 */
static __noinline int end(struct exit_ctx *ctx, u32 by_handle)
{
	bool resolve = by_handle || full_path;
	u64 start, bytes;
	struct open_call *c = call_ends(&start);
	struct opensnoop_event *e;
	struct open_record *r;

	if (!c)
		return 0;
	e = &c->event;
	e->head.time_ns = start;
	e->latency_ns = since(start, bpf_ktime_get_ns());
	if (failed_only && ctx->ret >= 0)
		return filtered();
	e->callers = stack_user ? stack_of_user(ctx, e->callers) : 0;
	e->ret = ctx->ret;
	identify_current(&e->who);
	e->path.at = sizeof(*e);
	bytes = e->path.bytes;
	if (!resolve && e->what & OPENSNOOP_GIVEN && bytes <= GIVEN_EARLY) {
		emit_copy(e, sizeof(*e) + bytes);
		return 0;
	}
	r = scratch_at(&records, by_handle);
	if (r)
		emit_long(c, r, resolve);
	return 0;
}

ON_ENTRY(open, keep_current() ? begin(OPENSNOOP_OPEN, AT_CWD, ctx->args[0], (u32)ctx->args[1],
				      ctx->args[2], 0) :
				0)

ON_ENTRY(creat, keep_current() ? begin(OPENSNOOP_CREAT, AT_CWD, ctx->args[0],
				       FLAG_CREAT | FLAG_WRONLY | FLAG_TRUNC, ctx->args[1], 0) :
				 0)

ON_ENTRY(openat, keep_current() ? begin(OPENSNOOP_OPENAT, ctx->args[0], ctx->args[1],
					(u32)ctx->args[2], ctx->args[3], 0) :
				  0)

UNPREEMPTED(on_openat2, "tracepoint/syscalls/sys_enter_openat2", struct enter_ctx)
{
	struct open_how how = {};
	u32 what = 0;

	if (!keep_current())
		return 0;
	if (bpf_probe_read_user(&how, sizeof(how), (void *)ctx->args[2]))
		what = OPENSNOOP_FLAGS_UNKNOWN;
	return begin(OPENSNOOP_OPENAT2, ctx->args[0], ctx->args[1], how.flags, how.mode, what);
}

UNPREEMPTED(on_handle, "tracepoint/syscalls/sys_enter_open_by_handle_at", struct enter_ctx)
{
	if (!keep_current())
		return 0;
	return begin(OPENSNOOP_HANDLE, ctx->args[0], 0, (u32)ctx->args[2], 0, 0);
}

UNPREEMPTED(on_opened,
	    "tracepoint/syscalls/sys_exit_open,sys_exit_creat,sys_exit_openat,sys_exit_openat2",
	    struct exit_ctx)
{
	return end(ctx, 0);
}

UNPREEMPTED(on_handle_opened, "tracepoint/syscalls/sys_exit_open_by_handle_at", struct exit_ctx)
{
	return end(ctx, 1);
}
