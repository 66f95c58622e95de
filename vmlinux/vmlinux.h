/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's types for the kernel programs: only the members that programs use. CO-RE finds each
 * member by its name in the running kernel's BTF, so that offsets here mean nothing; names and
 * types do. README.md says what must be right and how to add a member.
 *
 * The layouts are those of Linux 7.3. An older form of a type stands beside its use in bpf/lib.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__ /* bpf/bpf_tracing.h then takes the kernel's names of registers */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#include "base.h"
#include "bpf.h"
#if defined(__TARGET_ARCH_x86)
#include "x86_64/regs.h"
#elif defined(__TARGET_ARCH_arm64)
#include "arm64/regs.h"
#else
#error "vmlinux/ has no registers of this architecture"
#endif
#include "device.h"
#include "fs.h"
#include "cgroup.h"
#include "task.h"
#include "mm.h"
#include "block.h"
#include "net.h"
#include "trace.h"
#include "virtio.h"

#pragma clang attribute pop

#endif
