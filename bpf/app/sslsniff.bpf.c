// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sslsniff: data that programs read and write through TLS libraries. */
#include "lib/targets/call.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/long_record.bpf.h"
#include "lib/targets/roles.bpf.h"
#include "app/sslsniff.h"

RECORD(sslsniff_event);

struct tls_call {
	struct call call;
	u64 buffer;
	u64 done; /* where the _ex functions store the number of bytes */
	struct sslsniff_event e;
	char data[SSL_DATA_SHORT];
};

TASK_SLOT(struct tls_call);

struct long_call {
	struct sslsniff_event e;
	char data[SSL_DATA_MOST];
};

LONG_RECORDS(struct long_call)

OPT(bool, show_data);
OPT_OR(__u64, data_most, 8192);

/* An NSPR descriptor with a layer such as TLS has another one below it. */
struct pr_file_desc {
	u64 methods, secret, lower;
};

inline_ bool is_layered(u64 descriptor)
{
	struct pr_file_desc d = {};

	return !bpf_probe_read_user(&d, sizeof(d), (void *)descriptor) && d.lower;
}

inline_ int tls_entry(struct pt_regs *ctx, u32 role)
{
	struct tls_call *c;
	u32 function = role - 1;

	if (!role || !keep_current())
		return 0;
	if (function >= NSS_READ && !is_layered(PT_REGS_PARM1(ctx)))
		return 0;
	c = current_slot(true);
	if (!c || !call_begin(&c->call, ctx))
		return 0;
	c->e.function = function;
	c->buffer = PT_REGS_PARM2(ctx);
	c->done = PT_REGS_PARM4(ctx);
	return 0;
}

inline_ u64 bytes_done(struct tls_call *c, s64 result, bool *failed)
{
	u64 bytes = 0;

	switch (c->e.function) {
	case SSL_READ_EX:
	case SSL_WRITE_EX:
		*failed = (s32)result != 1 ||
			  bpf_probe_read_user(&bytes, sizeof(bytes), (void *)c->done);
		return *failed ? 0 : bytes;
	case SSL_HANDSHAKE:
		*failed = (s32)result != 1;
		return 0;
	case TLS_HANDSHAKE:
		*failed = (s32)result != 0;
		return 0;
	case TLS_RECV:
	case TLS_SEND: /* ssize_t */
		break;
	default:
		result = (s32)result;
	}
	*failed = result < 0;
	return result > 0 ? result : 0;
}

/* Number of bytes read. */
inline_ u32 read_data(char *to, const u32 room, u64 from, u64 bytes)
{
	u64 n = bytes < data_most ? bytes : data_most;

	barrier_var(n);
	if (n > room)
		n = room;
	return bpf_probe_read_user(to, n, (void *)from) ? 0 : n;
}

inline_ void emit_call(struct tls_call *c)
{
	u64 bytes = show_data ? c->e.bytes : 0;
	struct long_call *l = NULL;
	u32 n;

	if (bytes > SSL_DATA_SHORT && data_most > SSL_DATA_SHORT)
		l = long_record(true);
	if (l)
		n = read_data(l->data, SSL_DATA_MOST, c->buffer, bytes);
	else
		n = read_data(c->data, SSL_DATA_SHORT, c->buffer, bytes);
	c->e.data.bytes = n;
	if (n < bytes)
		count(LEDGER_TRUNCATED);
	barrier_var(n);
	if (l) {
		l->e = c->e;
		if (n <= SSL_DATA_MOST)
			emit_copy(&l->e, sizeof(l->e) + n);
		long_record_done();
	} else if (n <= SSL_DATA_SHORT) {
		emit_copy(&c->e, sizeof(c->e) + n);
	}
}

inline_ int tls_return(struct pt_regs *ctx, u32 role)
{
	struct tls_call *c = current_slot(false);
	u64 now = bpf_ktime_get_ns();
	bool failed = false;

	if (!role || !c || !call_end(&c->call, ctx))
		return 0;
	c->e.head.time_ns = c->call.start;
	c->e.latency_ns = since(c->call.start, now);
	c->e.bytes = bytes_done(c, PT_REGS_RC(ctx), &failed);
	c->e.failed = failed;
	c->e.data.at = sizeof(c->e);
	identify_current(&c->e.who);
	emit_call(c);
	c->call.start = 0;
	return 0;
}

ON_USER_FUNCTION("target/user", target_user, tls_entry(ctx, role_of(ctx)))
ON_USER_FUNCTION("target/user.return", target_user_return, tls_return(ctx, role_of(ctx)))
