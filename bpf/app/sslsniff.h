/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SSLSNIFF_H
#define CORETAP_SSLSNIFF_H

#include "lib/core/shared.h"

#define SSL_DATA_SHORT 480 /* bytes kept per thread */
#define SSL_DATA_MOST 32000

/* Functions of the libraries; a role is this number plus one. */
enum sslsniff_function {
	SSL_READ,
	SSL_WRITE,
	SSL_READ_EX,
	SSL_WRITE_EX,
	SSL_HANDSHAKE,
	TLS_RECV,
	TLS_SEND,
	TLS_HANDSHAKE,
	NSS_READ,
	NSS_WRITE,
	NSS_RECV,
	NSS_SEND,
	SSL_FUNCTIONS
};

/* Followed by the requested part of the data. */
struct sslsniff_event {
	struct event_head head;
	__u64 latency_ns;
	__u64 bytes; /* number read or written; also 0 if the call failed */
	struct task_id who;
	__u8 function;
	__u8 failed;
	__u8 pad[2];
	struct text data;
};

#endif
