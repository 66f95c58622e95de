/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Facts of waits that a thread has, for rules of the loader (src/stacks/wait_rules.hpp). */
#ifndef CORETAP_WAIT_FACTS_H
#define CORETAP_WAIT_FACTS_H

/* Facts of a wait: the system call's index (CALLS: none), and flags. */
#define WALL_CALL 0x7ff
#define WALL_WAIT 0x800 /* of each wait */
#define WALL_IOWAIT 0x1000
#define WALL_MEMSTALL 0x2000
#define WALL_LOCK 0x4000 /* of the kernel */
#define WALL_KTHREAD 0x8000
#define WALL_STOPPED 0x10000
#define WALL_TRACED 0x20000
#define WALL_FROZEN 0x40000
#define WALL_IDLE_THREAD 0x80000 /* of the kernel, and does not count as load */
#define WALL_UNSEEN 0x100000     /* its end was not seen: neither stack nor call are its own */
#define WALL_UNINTERRUPTIBLE 0x200000

#endif
