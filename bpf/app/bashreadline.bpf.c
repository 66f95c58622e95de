// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bashreadline: lines typed into interactive shells. */
#include "lib/targets/call.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "app/bashreadline.h"

RECORD(bashreadline_event);

struct prompt {
	struct call call;
};

TASK_SLOT(struct prompt);

/* Most lines are short; only a longer one uses the large record. */
#define SHORT_BYTES 256

inline_ long read_line(struct bashreadline_event *e, u64 line, u32 most)
{
	long bytes = bpf_probe_read_user_str(e + 1, most, (void *)line);

	e->command.at = sizeof(*e);
	e->command.bytes = bytes > 0 ? bytes - 1 : 0;
	e->head.time_ns = bpf_ktime_get_ns();
	identify_current(&e->who);
	return bytes;
}

inline_ int begin(struct pt_regs *ctx)
{
	struct prompt *p = wanted_slot();

	if (p)
		call_begin(&p->call, ctx);
	return 0;
}

inline_ int end(struct pt_regs *ctx)
{
	struct prompt *p = current_slot(false);
	u64 line = PT_REGS_RC(ctx);
	struct bashreadline_event *e;
	long bytes;

	if (!p || !call_end(&p->call, ctx))
		return 0;
	p->call.start = 0;
	if (!line) /* end of input */
		return 0;
	e = emit_room(sizeof(*e) + SHORT_BYTES, sizeof(*e));
	if (!e)
		return 0;
	bytes = read_line(e, line, SHORT_BYTES);
	if (bytes < SHORT_BYTES) {
		if (bytes <= 0)
			count(LEDGER_TRUNCATED);
		return emit_end(e);
	}
	bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
	/* Room for the terminator, and for one more byte, which shows a truncated line. */
	e = emit_room(sizeof(*e) + COMMAND_BYTES + 2, sizeof(*e));
	if (!e)
		return 0;
	bytes = read_line(e, line, COMMAND_BYTES + 2);
	if (e->command.bytes > COMMAND_BYTES)
		e->command.bytes = COMMAND_BYTES;
	if (bytes <= 0 || bytes > COMMAND_BYTES + 1)
		count(LEDGER_TRUNCATED);
	return emit_end(e);
}

ON_USER_FUNCTION("uprobe/bash:readline/0", on_bash, begin(ctx))
ON_USER_FUNCTION("uretprobe/bash:readline/0", on_bash_return, end(ctx))

/* If bash uses the shared library; other programs use it as well. */
inline_ bool is_bash(void)
{
	char comm[COMM_LEN] = {};

	bpf_get_current_comm(comm, sizeof(comm));
	return comm[0] == 'b' && comm[1] == 'a' && comm[2] == 's' && comm[3] == 'h' && !comm[4];
}

ON_USER_FUNCTION("uprobe/libreadline.so:readline/0", on_library, is_bash() ? begin(ctx) : 0)
ON_USER_FUNCTION("uretprobe/libreadline.so:readline/0", on_library_return, is_bash() ? end(ctx) : 0)
