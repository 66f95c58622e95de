// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* mountsnoop: calls that mount and unmount file systems. */
#include "lib/syscall/calls.bpf.h"
#include "lib/paths/early_path.bpf.h"
#include "lib/syscall/call_slot.bpf.h"
#include "syscall/mountsnoop.h"

RECORD(mountsnoop_event);

struct mount_call {
	u64 start; /* 0: none in progress */
	u64 args[MOUNTSNOOP_ARGS];
	u32 call;
	u32 strings; /* a bit for each argument that is a string */
};

CALL_SLOT(struct mount_call)

struct mount_record {
	volatile u32 used;
	u32 pad;
	struct mountsnoop_event event;
	char text[(MOUNTSNOOP_ARGS + 1) * (GIVEN_MOST + 1)];
};

SCRATCH(records, struct mount_record);

#define CALL(number, name, string_arguments)   \
	case number:                           \
		c->call = MOUNTSNOOP_##name;   \
		c->strings = string_arguments; \
		break;

/* The kernel rejects a program that reads more arguments than the call has. */
inline_ int begin(struct enter_ctx *ctx, const int arguments)
{
	struct mount_call *c = wanted_slot();

	if (!c)
		return 0;
	for (int i = 0; i < MOUNTSNOOP_ARGS; i++)
		c->args[i] = i < arguments ? ctx->args[i] : 0;
	switch ((u32)ctx->nr) {
		CALL(CALL_MOUNT, MOUNT, 0x17)
		CALL(CALL_UMOUNT, UMOUNT, 1)
		CALL(CALL_PIVOT_ROOT, PIVOT_ROOT, 3)
		CALL(428, OPEN_TREE, 2)
		CALL(429, MOVE_MOUNT, 0xa)
		CALL(430, FSOPEN, 1)
		CALL(431, FSCONFIG, 4)
		CALL(432, FSMOUNT, 0)
		CALL(433, FSPICK, 2)
		CALL(442, MOUNT_SETATTR, 2)
		CALL(467, OPEN_TREE_ATTR, 2)
	default:
		return 0;
	}
	/* Commands with a string as value: SET_STRING, SET_PATH, SET_PATH_EMPTY. */
	if (c->call == MOUNTSNOOP_FSCONFIG && (1 << (c->args[1] & 31)) & 0x1a)
		c->strings |= 8;
	c->start = bpf_ktime_get_ns();
	return 0;
}

UNPREEMPTED(on_enter2, "tracepoint/syscalls/sys_enter_umount,sys_enter_pivot_root,sys_enter_fsopen",
	    struct enter_ctx)
{
	return begin(ctx, 2);
}

UNPREEMPTED(on_enter3, "tracepoint/syscalls/sys_enter_open_tree,sys_enter_fsmount,sys_enter_fspick",
	    struct enter_ctx)
{
	return begin(ctx, 3);
}

UNPREEMPTED(on_enter5,
	    "tracepoint/syscalls/"
	    "sys_enter_mount,sys_enter_move_mount,sys_enter_fsconfig,sys_enter_mount_setattr,"
	    "sys_enter_open_tree_attr",
	    struct enter_ctx)
{
	return begin(ctx, 5);
}

/* At the call's exit the kernel has faulted in the memory. */
inline_ void read_text(struct mount_record *r, u32 i, u64 from)
{
	struct mountsnoop_event *e = &r->event;
	u32 used = r->used, bytes;
	bool cut = false;
	s64 n;

	if (used > MOUNTSNOOP_ARGS * GIVEN_MOST)
		return;
	barrier_var(used); /* the check must apply to this register, not a copy */
	n = text_user(r->text + used, GIVEN_MOST, (void *)from, &cut);
	/* If the kernel could not read it either (EFAULT), the error is the program's. */
	if (cut || (n < 0 && e->ret != -EFAULT))
		count(LEDGER_TRUNCATED);
	if (n < 0)
		return;
	bytes = n & GIVEN_MOST;
	e->given |= 1 << i;
	if (cut)
		e->cut |= 1 << i;
	e->text[i].at = sizeof(*e) + used;
	e->text[i].bytes = bytes;
	r->used = used + bytes;
}

UNPREEMPTED(
	on_exit,
	"tracepoint/syscalls/"
	"sys_exit_mount,sys_exit_umount,sys_exit_pivot_root,sys_exit_open_tree,sys_exit_move_mount,"
	"sys_exit_fsopen,sys_exit_fsconfig,sys_exit_fsmount,sys_exit_fspick,sys_exit_mount_setattr,"
	"sys_exit_open_tree_attr",
	struct exit_ctx)
{
	u64 start, used;
	struct mount_call *c = call_ends(&start);
	struct task_struct *parent;
	struct mountsnoop_event *e;
	struct mount_record *r;

	r = c ? scratch(&records) : NULL;
	if (!r)
		return 0;
	e = &r->event;
	__builtin_memset(e, 0, sizeof(*e));
	r->used = 0;
	e->head.time_ns = start;
	e->latency_ns = since(start, bpf_ktime_get_ns());
	e->ret = ctx->ret;
	e->call = c->call;
	identify_current(&e->who);
	e->mount_ns = BPF_CORE_READ(current_task(), nsproxy, mnt_ns, ns.inum);
	parent = BPF_CORE_READ(current_task(), real_parent);
	e->ppid = process_of(parent);
	bpf_core_read_str(e->pcomm, sizeof(e->pcomm), &parent->comm);
	for (u32 i = 0; i < MOUNTSNOOP_ARGS; i++) {
		e->args[i] = c->args[i];
		if (c->strings & 1 << i && c->args[i])
			read_text(r, i, c->args[i]);
	}
	if (c->call >= MOUNTSNOOP_MOUNT_SETATTR)
		e->attr_given = !bpf_probe_read_user(&e->attr, sizeof(e->attr), (void *)c->args[3]);
	used = r->used;
	if (used > MOUNTSNOOP_ARGS * GIVEN_MOST)
		used = 0;
	barrier_var(used);
	emit_copy(e, sizeof(*e) + used);
	return 0;
}
