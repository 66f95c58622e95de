// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sofdsnoop: file descriptors passed over Unix sockets. */
#include "lib/net/fd_sock.bpf.h"
#include "lib/paths/path_record.bpf.h"
#include "lib/syscall/call_slot.bpf.h"
#include "syscall/sofdsnoop.h"

RECORD(sofdsnoop_event);

#define SOCK_AF_UNIX 1
#define SCM_RIGHTS 1 /* at the level SOL_SOCKET, which is 1, too */
#define SCM_MAX_FD 253
#define MOST_MESSAGES 1024 /* of one call: UIO_MAXIOV */
#define MOST_CONTROL 16    /* parts of control data; more than there are kinds */

/* Layout of struct msghdr, mmsghdr and cmsghdr in 64-bit programs. */
#define MMSGHDR_BYTES 64
#define CONTROL_AT 32

struct control {
	u64 bytes;
	u32 level;
	u32 type;
};

/* The current call of a task. */
struct msg_call {
	u64 start; /* 0: none in progress */
	u64 messages;
	u32 fd;
	u32 sends;
	u32 several; /* sendmmsg, recvmmsg */
	u32 pad;
};

CALL_SLOT(struct msg_call)

PATH_RECORD(sofd_record, struct sofdsnoop_event);
SCRATCH(records, struct sofd_record);

inline_ struct sock *unix_sock(u32 fd)
{
	struct sock *sk = current_sock(fd);

	return sk && BPF_CORE_READ(sk, __sk_common.skc_family) == SOCK_AF_UNIX ? sk : NULL;
}

inline_ int begin(u32 fd, u64 messages, bool sends, bool several)
{
	struct msg_call *c = unix_sock(fd) ? wanted_slot() : NULL;

	if (!c)
		return 0;
	c->messages = messages;
	c->fd = fd;
	c->sends = sends;
	c->several = several;
	c->start = bpf_ktime_get_ns();
	return 0;
}

ON_ENTRY(sendmsg, begin(ctx->args[0], ctx->args[1], true, false))
ON_ENTRY(sendmmsg, begin(ctx->args[0], ctx->args[1], true, true))
ON_ENTRY(recvmsg, begin(ctx->args[0], ctx->args[1], false, false))
ON_ENTRY(recvmmsg, begin(ctx->args[0], ctx->args[1], false, true))

/* A separate function, as the verifier needs it; so are those below. */
__noinline int show_file(s32 fd)
{
	struct sofd_record *r = scratch(&records);
	struct sofdsnoop_event *e;
	struct file *file;
	u32 text = 0;

	if (!r)
		return 0;
	e = &r->event;
	e->fd = fd;
	e->mode = 0;
	e->inode = 0;
	file = current_file(fd);
	if (file) {
		e->mode = FOLLOW(file, file, f_inode, i_mode);
		e->inode = FOLLOW(file, file, f_inode, i_ino);
		e->path_kind = count_cut(file_path(&r->walked, r->text, file));
		text = walked_bytes(&r->walked);
	}
	e->path.at = sizeof(*e);
	e->path.bytes = text;
	emit_copy(e, sizeof(*e) + text);
	return 0;
}

__noinline int show_files(u64 at, u32 files)
{
	for (u32 i = 0; i < SCM_MAX_FD; i++) {
		s32 fd = -1;

		if (i >= files)
			break;
		if (bpf_probe_read_user(&fd, sizeof(fd), (void *)(at + i * sizeof(fd))))
			count(LEDGER_TRUNCATED);
		else
			show_file(fd);
	}
	return 0;
}

__noinline int show_message(u64 message)
{
	u64 control[2] = {}, at, end; /* its address and length */

	if (bpf_probe_read_user(control, sizeof(control), (void *)(message + CONTROL_AT)))
		return counted(LEDGER_TRUNCATED);
	at = control[0];
	end = at + control[1];
	for (u32 i = 0; i < MOST_CONTROL; i++) {
		struct control c = {};

		if (!at || at + sizeof(c) > end)
			return 0;
		if (bpf_probe_read_user(&c, sizeof(c), (void *)at))
			break;
		if (c.bytes < sizeof(c) || c.bytes > end - at)
			return 0;
		if (c.level == 1 && c.type == SCM_RIGHTS)
			show_files(at + sizeof(c), (c.bytes - sizeof(c)) / sizeof(s32));
		at += (c.bytes + 7) & ~7ULL;
	}
	return counted(LEDGER_TRUNCATED);
}

inline_ u32 peer_of(struct sock *sk)
{
	struct pid *peer = BPF_CORE_READ(sk, sk_peer_pid);

	if (!peer)
		return 0;
	return view_pidns ? pid_seen(peer) : BPF_CORE_READ(peer, numbers[0].nr);
}

UNPREEMPTED(
	on_exit,
	"tracepoint/syscalls/sys_exit_sendmsg,sys_exit_sendmmsg,sys_exit_recvmsg,sys_exit_recvmmsg",
	struct exit_ctx)
{
	u64 start, messages;
	struct msg_call *c = call_ends(&start);
	struct sofdsnoop_event *e;
	struct sofd_record *r;
	struct file *file;
	struct sock *sk;
	u32 several;

	r = c && ctx->ret >= 0 ? scratch(&records) : NULL;
	if (!r)
		return 0;
	e = &r->event;
	__builtin_memset(e, 0, sizeof(*e));
	e->head.time_ns = bpf_ktime_get_ns();
	identify_current(&e->who);
	e->sends = c->sends;
	e->socket_fd = c->fd;
	sk = unix_sock(c->fd);
	if (sk) {
		file = current_file(c->fd);
		e->socket_inode = FOLLOW(file, file, f_inode, i_ino);
		e->peer = peer_of(sk);
	}
	messages = c->messages;
	several = c->several;
	for (u32 i = 0; i < MOST_MESSAGES; i++) {
		if (several ? i >= ctx->ret : i)
			break;
		show_message(messages + i * MMSGHDR_BYTES);
	}
	return 0;
}
