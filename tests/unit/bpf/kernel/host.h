/* bpf/lib compiled for the host, as C or C++: what its headers include is kept out by their guards,
 * and the language of kernel programs stands here instead. */
#ifndef CORETAP_HOST_H
#define CORETAP_HOST_H

#include <linux/bpf.h>

#include "lib/shared.h"

#define CORETAP_BPF_H
#define CORETAP_EMIT_BPF_H
#define CORETAP_TASK_BPF_H
#define CORETAP_PROCESS_BPF_H
#define CORETAP_MAPPING_BPF_H
#define CORETAP_UNREAD_FILE_BPF_H

#define inline_ __attribute__((unused)) static inline
#define SEC(name)
#define OPT(type, name) type name = 0
#define __noinline __attribute__((unused))
#define view_pidns 0
#define pid_seen(pid) 0
#define barrier_var(x) asm volatile("" : "+r"(x))
#define CPU_SLOTS(name, slot) __attribute__((unused)) slot name
#define __uint(name, value) int(*name)[value]
#define __type(name, value) value *name
#define __array(name, value) value(*name)[1]

#define BPF_CORE_READ_BITFIELD(from, member) ((from) ? (from)->member : 0)
#define BPF_CORE_READ_BITFIELD_PROBED BPF_CORE_READ_BITFIELD

#endif
