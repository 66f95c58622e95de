// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ttysnoop: data that programs write to a terminal. */
#include "lib/paths/open_file.bpf.h"
#include "lib/syscall/call_slot.bpf.h"
#include "app/ttysnoop.h"

RECORD(ttysnoop_event);

OPT(__u32, wanted_terminal); /* device number in the kernel's encoding; 0: all except these two */
OPT(__u32, own_terminal);
OPT(__u32, own_output);
OPT(__u32, wanted_instance); /* of a pseudo-terminal: the device of its file system; else 0 */
OPT_OR(__u32, part_bytes, TTYSNOOP_PART);
OPT_OR(__u32, most_parts, 16);

#define DEVICE(major, minor) ((major) << 20 | (minor))
#define DEV_TTY DEVICE(5, 0) /* the caller's controlling terminal */
#define DEV_CONSOLE DEVICE(5, 1)

/* The current write of a task, and the progress of copying it. */
struct tty_write {
	u64 start; /* 0: none in progress */
	u64 at;
	u64 bytes;
	u64 left;    /* bytes not copied yet */
	u64 vectors; /* writev(): address of the next struct iovec; 0: write() */
	u32 part;
	u32 terminal;
};

CALL_SLOT(struct tty_write)

struct tty_record {
	struct ttysnoop_event event;
	char text[TTYSNOOP_PART];
};

SCRATCH(records, struct tty_record);

/* Majors of terminals: virtual and serial ones, pseudo-terminals, modems, hypervisor's. */
inline_ bool is_terminal(u32 device)
{
	u32 major = device >> 20;

	return major == 4 || (major >= 136 && major <= 143) || major == 166 || major == 188 ||
	       major == 204 || major == 229;
}

/* The device of the terminal behind an open file, if it is wanted; else 0. */
inline_ u32 terminal_of(struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct tty_file_private *open;
	u32 device, instance = 0;
	struct tty_struct *tty;
	struct dentry *entry;

	if ((BPF_CORE_READ(inode, i_mode) & MODE_FORMAT) != MODE_CHARACTER_DEVICE)
		return 0;
	device = BPF_CORE_READ(inode, i_rdev);
	if (device == DEV_TTY || (device == DEV_CONSOLE && wanted_terminal != DEV_CONSOLE)) {
		open = BPF_CORE_READ(file, private_data);
		tty = BPF_CORE_READ(open, tty);
		device =
			DEVICE(BPF_CORE_READ(tty, driver, major),
			       BPF_CORE_READ(tty, driver, minor_start) + BPF_CORE_READ(tty, index));
		entry = BPF_CORE_READ(tty, driver_data); /* for a pseudo-terminal */
		if (wanted_instance)
			instance = BPF_CORE_READ(entry, d_inode, i_sb, s_dev);
	} else if (wanted_instance) {
		instance = BPF_CORE_READ(inode, i_sb, s_dev);
	}
	if (wanted_terminal)
		return device == wanted_terminal && instance == wanted_instance ? device : 0;
	return is_terminal(device) && device != own_terminal && device != own_output ? device : 0;
}

inline_ int begin(u32 fd, u64 at, u64 bytes, u64 vectors)
{
	struct file *file = current_file(fd);
	u32 terminal = file ? terminal_of(file) : 0;
	struct tty_write *w = terminal ? wanted_slot() : NULL;

	if (!w)
		return 0;
	w->terminal = terminal;
	w->at = at;
	w->bytes = bytes;
	w->vectors = vectors;
	w->part = 0;
	w->start = bpf_ktime_get_ns();
	return 0;
}

ON_ENTRY(write, begin(ctx->args[0], ctx->args[1], ctx->args[2], 0))
ON_ENTRY(writev, begin(ctx->args[0], 0, 0, ctx->args[1]))

/* Emits the next part; 0: nothing left. A separate function: the verifier checks it once. */
__noinline int show_part(void)
{
	struct tty_write *w = current_slot(false);
	struct tty_record *r = scratch(&records);
	u64 vector[2], n, at;

	if (!w || !r || !w->left)
		return 0;
	if (!w->bytes) {
		if (!w->vectors || bpf_probe_read_user(vector, sizeof(vector), (void *)w->vectors))
			return 0;
		w->vectors += sizeof(vector);
		w->at = vector[0];
		w->bytes = vector[1];
		if (!w->bytes)
			return 1;
	}
	n = w->bytes < w->left ? w->bytes : w->left;
	if (n > part_bytes)
		n = part_bytes;
	at = w->at;
	barrier_var(n);
	if (n > TTYSNOOP_PART || bpf_probe_read_user(r->text, n, (void *)at))
		return 0;
	r->event.data.at = sizeof(r->event);
	r->event.data.bytes = n;
	r->event.part = w->part;
	w->at += n;
	w->bytes -= n;
	w->left -= n;
	w->part++;
	emit_copy(r, sizeof(r->event) + n);
	return 1;
}

UNPREEMPTED(on_exit, "tracepoint/syscalls/sys_exit_write,sys_exit_writev", struct exit_ctx)
{
	u64 start;
	struct tty_write *w = call_ends(&start);
	struct tty_record *r;

	if (!w)
		return 0;
	r = scratch(&records);
	if (r && ctx->ret > 0) {
		r->event.head.time_ns = start;
		r->event.terminal = w->terminal;
		r->event.pad = 0;
		identify_current(&r->event.who);
		w->left = ctx->ret;
		/* Parts of writev() may be empty. */
		for (u32 i = 0; i < 2 * TTYSNOOP_PARTS; i++)
			if (w->part >= most_parts || !show_part())
				break;
		if (w->left)
			count(LEDGER_TRUNCATED);
	}
	return 0;
}
