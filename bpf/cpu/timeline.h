/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TIMELINE_H
#define CORETAP_TIMELINE_H

#include "lib/core/shared.h"
#include "lib/net/flow.h"

enum timeline_kind {
	TIMELINE_SWITCH,  /* struct timeline_task_event: `task` gets the CPU */
	TIMELINE_WAKING,  /* `task` is woken by what runs on the CPU */
	TIMELINE_RUNNING, /* `task` runs when tracing begins or ends */
	TIMELINE_TASK,    /* `task` exists */
	TIMELINE_GAP,     /* struct timeline_gap */
	TIMELINE_IRQ,     /* struct timeline_interrupt */
	TIMELINE_SOFTIRQ,
	TIMELINE_CALL,    /* struct timeline_call */
	TIMELINE_REQUEST, /* struct timeline_request */
	TIMELINE_FAULT,   /* struct timeline_fault */
	TIMELINE_NET,     /* struct timeline_net */
	TIMELINE_KINDS
};

/* Ids of tasks outside the loader's pid namespace begin here, above all others. */
#define TIMELINE_OUTSIDE (1U << 23)

struct timeline_head {
	struct event_head head;
	__u16 kind;
	__u16 cpu;
	__u32 tid; /* the running task; at a switch the one that leaves the CPU */
};

struct timeline_task {
	__u32 tid;
	__u32 tgid;
	char comm[COMM_LEN];
};

/* In `what` of a waking, above the target CPU: the waker is an interrupt. */
#define TIMELINE_WAKER_HARDIRQ (1U << 16)
#define TIMELINE_WAKER_SOFTIRQ (1U << 17)

/* In `what` of a switch, besides the state of the task that leaves. */
#define TIMELINE_PREEMPTED (1U << 31)

struct timeline_task_event {
	struct timeline_head at;
	__u32 what; /* switch: task state; waking: target CPU; task: parent process */
	__s32 prio;
	struct timeline_task task;
};

/* Records of one CPU that did not fit into the ring buffer, before the record that follows. */
struct timeline_gap {
	struct timeline_head at; /* the time is its end */
	__u32 lost;              /* records */
	__s32 prio;
	struct timeline_task task; /* runs at the end of the gap */
	__u64 from;
	__u32 scheduling; /* switches or wakings were lost */
	__u32 pad;
};

/* Ends at the time of the head. */
struct timeline_interrupt {
	struct timeline_head at;
	__u64 start;
	__u32 number;
	__u32 pad;
	char name[24]; /* of a handler, or of the processor's interrupt */
};

struct timeline_call {
	struct timeline_head at;
	__u64 start;
	__s64 result;
	struct timeline_task task;
	__u32 index; /* by call_index() */
	__u32 unfinished;
};

struct timeline_request {
	struct timeline_head at;
	__u64 created; /* by the submitter; 0: not known */
	__u64 issued;
	__u64 sector;
	struct timeline_task submitter; /* tid 0: not known */
	__u32 bytes;
	__u32 disk;
	__u32 flags;
	__s32 status;
};

struct timeline_fault {
	struct timeline_head at;
	__u64 start;
	__u64 address;
	struct timeline_task task;
	__u32 major;
	__u32 pad;
};

enum timeline_net_event {
	TIMELINE_STATE,
	TIMELINE_SEND,
	TIMELINE_RECEIVE,
	TIMELINE_ACCEPT,
	TIMELINE_RETRANSMIT,
};

/* Of a TCP connection. */
struct timeline_net {
	struct timeline_head at;
	struct timeline_task task; /* tid 0: none */
	struct flow flow;
	__u64 socket; /* 0: it has none yet */
	__u16 what;   /* enum timeline_net_event */
	__u16 cause;  /* of a retransmit: enum retransmit_cause */
	__u32 bytes;
	__u32 oldstate;
	__u32 newstate;
};

#endif
