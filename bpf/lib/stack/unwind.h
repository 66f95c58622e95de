/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Unwind tables: the loader builds them (src/unwind), lib/stack/unwind.bpf.h uses them. */
#ifndef CORETAP_UNWIND_H
#define CORETAP_UNWIND_H

#include "lib/core/shared.h"

/*
 * Code of a file is divided into pages of 64 KiB, each with sorted rows. A row gives the rule
 * from an address on: the address's low 16 bits above the rule's index, so that one comparison
 * finds it. The first row of a page is at 0: the rule in effect at the end of the previous page.
 */
#define UNWIND_PAGE_BITS 16
#define UNWIND_CHUNK_ROWS 65536 /* number of rows per map */

struct unwind_page {
	__u16 chunk; /* index of the map */
	__u16 first; /* first row */
	__u32 rows;
};

/* How to compute the CFA (the stack pointer after the function's return). */
enum unwind_cfa {
	UNWIND_NONE,   /* no information from this address on */
	UNWIND_END,    /* the outermost frame: its return address is undefined */
	UNWIND_SP,     /* stack pointer + offset */
	UNWIND_BP,     /* frame pointer + offset; with `more`, on another stack: below, too */
	UNWIND_SIGNAL, /* return address of a signal handler: registers are in its ucontext */
	/* x86-64: */
	UNWIND_BX,       /* rbx + offset: the dynamic linker's lazy binding */
	UNWIND_R10,      /* r10 + offset: while a function realigns its stack */
	UNWIND_SP_DEREF, /* *(rsp + offset) + more */
	UNWIND_BP_DEREF, /* *(rbp + offset) + more: realigned stacks */
	UNWIND_PLT,      /* rsp + 8; + 16 from byte `more` of each 16-byte entry */
	UNWIND_VFORK,    /* rsp + offset; the return address is in rdi, during vfork() */
	/* all: */
	UNWIND_OTHER, /* has unwind information that these rules cannot represent */
};

/* Location of the caller's frame pointer: rbp, x29. */
enum unwind_bp {
	UNWIND_BP_SAME,
	UNWIND_BP_AT_CFA, /* CFA + 8 * bp_slot */
	UNWIND_BP_AT_BP,  /* frame pointer + 8 * bp_slot */
};

#define UNWIND_BX_LOST 32767 /* as bx_slot: location of the caller's rbx unknown */

/* The rule at index 0 has UNWIND_NONE. */
struct unwind_rule {
	__u8 cfa; /* enum unwind_cfa */
	__u8 bp;  /* enum unwind_bp */
	__s16 bp_slot;
	__s16 bx_slot; /* the caller's rbx is at CFA + 8 * bx_slot; 0: unchanged */
	__s16 ra_slot; /* the return address is at CFA + 8 * ra_slot; 0: x86-64 CFA - 8, arm64 x30
			*/
	__s32 offset;
	__s32 more;
};

/* Reason why a mapping has no pages. */
enum unwind_lack {
	UNWIND_LACK_CFI,    /* not from a file, or the file has no CFI: frame pointers are tried */
	UNWIND_LACK_MEMORY, /* more than --unwind-memory allows */
	UNWIND_LACK_FILE,   /* the loader has not read it yet */
};

/* Executable memory of a process; mappings of one process are adjacent and sorted. */
struct unwind_mapping {
	__u64 start;
	__u64 bias; /* an address minus this is an offset from the file's first page of code */
	__u32 page; /* the file's first page; if `pages` is 0: enum unwind_lack */
	__u32 pages;
	__u32 length; /* in units of 4096 bytes */
	__u16 file;   /* number for STACK_IN_FILE; 0: none */
	__u8 used;    /* used since the loader last cleared it */
	__u8 runtime; /* of runtime_files, if the file has an interpreter; 0: none */
};

/*
 * By program_of(). For a process given to the loader before tracing, the count of
 * execs is not known at first: UNWIND_ANY_EXEC replaces it until the next exec.
 */
#define UNWIND_ANY_EXEC 0xffffffff

struct unwind_process {
	__u32 first; /* index of the first mapping */
	__u32 count;
	__u16 generation; /* of stack_image() */
	__u8 asked;       /* the loader was asked to find missing code */
	__u8 looked;      /* it has done so: code still missing cannot be found */
	__u32 hotspot;    /* of hotspot_processes; 0: none */
};

/*
 * Identity of a mapping's file, from the kernel's inode. It differs from stat()'s on overlayfs
 * and btrfs, so the loader maps the file it has opened and asks the kernel. Inode numbers are
 * reused: generation, size and modification time distinguish files. All 0: the vdso.
 */
struct unwind_file_key {
	__u64 inode;
	__u64 size;
	__u64 modified_ns;
	__u32 superblock; /* distinguishes currently mounted ones */
	__u32 generation;
};

/* Executable segments as mapped completely, in units of 4096 bytes of the file. */
#define UNWIND_EXTENTS 3
struct unwind_extent {
	__u32 first;
	__u32 length; /* 0: none */
	__u64 bias;   /* the bias of a mapping is its start minus this */
};

/* A file that the loader has read, for processes whose mappings it has not read. */
struct unwind_file {
	__u32 page; /* as in struct unwind_mapping */
	__u32 pages;
	__u32 file;
	__u32 runtime; /* as in struct unwind_mapping */
	struct unwind_extent extents[UNWIND_EXTENTS];
};

/* A file in a stack that the loader has not read (bpf/lib/stack/unread_file.bpf.h). */
#define UNWIND_UNREAD 0xfffffffffffffffeULL /* no record starts with this time */

struct unwind_unread {
	__u64 mark;
	__u32 tgid; /* as in struct stack_process */
	__u32 kind; /* enum path_kind */
	struct text text;
	__u32 pad;
};

/* The answer to the loader's query about one of its addresses. */
struct unwind_answer {
	struct unwind_file_key key;
	__u64 start; /* of the mapping; 0: not found */
	__u64 end;
	__u64 page; /* of the file, mapped at `start` */
};

#define UNWIND_RULES 16384
#define UNWIND_PAGES 65536
#define UNWIND_MAPPINGS 65536

/* Walks for programs that interrupt others of the same tool (bpf/lib/stack/task_walk.bpf.h). */
#define WALKS_SHARED 32

#endif
