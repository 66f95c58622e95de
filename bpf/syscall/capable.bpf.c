// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* capable: capability checks. */
#include "lib/syscall/current_call.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/stack/task_walk.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "syscall/capable.h"

RECORD(capable_event);

OPT(bool, not_audited);
OPT(bool, denied_only);
OPT(__u32, unique_by);           /* enum capable_unique */
OPT(__u64, wanted_capabilities); /* 0: all */

struct check {
	u64 who; /* process or cgroup */
	u32 capability;
	u32 denied;
};

MAP(HASH, seen, 1, struct check, u8);

inline_ bool first_of_its_kind(u32 capability, s32 ret)
{
	struct check c = { .capability = capability, .denied = ret != 0 };
	u8 one = 1;

	c.who = unique_by == CAPABLE_BY_CGROUP ? bpf_get_current_cgroup_id() :
						 bpf_get_current_pid_tgid() >> 32;
	if (bpf_map_lookup_elem(&seen, &c))
		return false;
	if (bpf_map_update_elem(&seen, &c, &one, BPF_ANY))
		count(LEDGER_UNTRACKED); /* and shown again */
	return true;
}

inline_ bool check_wanted(u32 capability, u32 options, s32 ret)
{
	if (wanted_capabilities && !(capability < 64 && wanted_capabilities >> capability & 1))
		return false;
	if (!not_audited && options & CAPABLE_NOAUDIT)
		return false;
	return (!denied_only || ret) && (!unique_by || first_of_its_kind(capability, ret));
}

inline_ int checked(void *ctx, u64 userns, u32 capability, u32 options, s32 ret)
{
	struct user_namespace *ns = (void *)userns;
	struct capable_event *e;
	u64 user_stack;
	u32 call;

	if (!keep_current())
		return 0;
	if (!check_wanted(capability, options, ret))
		return filtered();
	user_stack = stack_user ? stack_of_user(ctx, 0) : 0;
	e = emit_begin_stack(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->user_stack = user_stack;
	e->capability = capability;
	e->ret = ret;
	e->options = options;
	e->userns = BPF_CORE_READ(ns, ns.inum);
	call = current_call();
	e->syscall = call < CALLS ? call + 1 : 0;
	identify_current(&e->who);
	return emit_end_stack(ctx, e, sizeof(*e));
}

PROGRAM(on_checked, "fexit/cap_capable",
	checked(ctx, ctx[1], ctx[2], (u8)ctx[3] | CAPABLE_KNOWN, ctx[4]))

/* Since 6.14; without the options. */
PROGRAM(on_check, "tp_btf/cap_capable", checked(ctx, ctx[1], ctx[3], 0, ctx[4]))

/* Arguments of the task's current check. */
struct asked {
	u64 userns; /* 0: none in progress */
	u32 capability;
	u32 options;
};

TASK_SLOT(struct asked);

SEC("kprobe/cap_capable")
int on_asked(struct pt_regs *ctx)
{
	struct asked *a = current_slot(true);

	if (!a)
		return 0;
	a->userns = PT_REGS_PARM2(ctx);
	a->capability = PT_REGS_PARM3(ctx);
	a->options = PT_REGS_PARM4(ctx);
	return 0;
}

SEC("kretprobe/cap_capable")
int on_answered(struct pt_regs *ctx)
{
	struct asked *a = current_slot(false);
	u64 userns;

	if (!a || !a->userns)
		return 0;
	userns = a->userns;
	a->userns = 0;
	return checked(ctx, userns, a->capability, (u8)a->options | CAPABLE_KNOWN, PT_REGS_RC(ctx));
}
