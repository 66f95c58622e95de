/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Unwind tables for x86-64: the loader makes them (src/unwind), lib/unwind.bpf.h walks by them. */
#ifndef CORETAP_UNWIND_H
#define CORETAP_UNWIND_H

#include "lib/shared.h"

/*
 * A file's code is cut into pages of 64 KiB, each with its rows, sorted. A row says which rule
 * holds from an address on: the address' low 16 bits above the rule's index, so that one comparison
 * finds it. The first row of a page is at 0: the rule that the page before ends with.
 */
#define UNWIND_PAGE_BITS 16
#define UNWIND_CHUNK_ROWS 65536 /* rows are kept in maps of this many */

struct unwind_page {
	__u16 chunk; /* which of those maps */
	__u16 first; /* row */
	__u32 rows;
};

/* How the CFA (what the stack pointer is when the function has returned) is found. */
enum unwind_cfa {
	UNWIND_NONE,     /* nothing is known from here on */
	UNWIND_END,      /* the outermost frame: its return address is undefined */
	UNWIND_SP,       /* rsp + offset */
	UNWIND_BP,       /* rbp + offset */
	UNWIND_BX,       /* rbx + offset: the dynamic linker's lazy binding */
	UNWIND_R10,      /* r10 + offset: while a function realigns its stack */
	UNWIND_SP_DEREF, /* *(rsp + offset) + more */
	UNWIND_BP_DEREF, /* *(rbp + offset) + more: realigned stacks */
	UNWIND_PLT,      /* rsp + 8, + 16 from byte `more` of each 16-byte entry on */
	UNWIND_SIGNAL,   /* where a signal handler returns to: registers lie in its ucontext */
	UNWIND_VFORK,    /* rsp + offset; the return address is in rdi, while vfork() runs */
	UNWIND_OTHER,    /* described, but in a way that these rules cannot express */
};

/* Where the caller's rbp is. */
enum unwind_bp {
	UNWIND_BP_SAME,
	UNWIND_BP_AT_CFA, /* CFA + 8 * bp_slot */
	UNWIND_BP_AT_BP,  /* rbp + 8 * bp_slot */
};

#define UNWIND_BX_LOST 32767 /* as bx_slot: where the caller's rbx is cannot be told */

/* The return address is always at CFA - 8. Index 0 of the rules is one with UNWIND_NONE. */
struct unwind_rule {
	__u8 cfa; /* enum unwind_cfa */
	__u8 bp;  /* enum unwind_bp */
	__s16 bp_slot;
	__s16 bx_slot; /* the caller's rbx is at CFA + 8 * bx_slot; 0: it is the same */
	__s16 pad;
	__s32 offset;
	__s32 more;
};

/* Why a mapping has no pages. */
enum unwind_lack {
	UNWIND_LACK_CFI,    /* not from a file, or the file has none: frame pointers are tried */
	UNWIND_LACK_MEMORY, /* more than --unwind-memory allows */
	UNWIND_LACK_FILE,   /* the loader has not read it yet */
};

/* Executable memory of a process; those of one process lie together, sorted. */
struct unwind_mapping {
	__u64 start;
	__u64 bias; /* an address less this counts from the file's first page of code on */
	__u32 page; /* the file's first one; without pages: enum unwind_lack */
	__u32 pages;
	__u32 length; /* in 4096 bytes */
	__u16 file;   /* number for STACK_IN_FILE; 0: none */
	__u16 used;   /* since the loader has cleared it */
};

/*
 * By program_of(). Before the loader learns of a process that was named to it, it does not know
 * the count of execs: until the next one UNWIND_ANY_EXEC stands for it.
 */
#define UNWIND_ANY_EXEC 0xffffffff

struct unwind_process {
	__u32 first; /* mapping */
	__u32 count;
	__u16 generation; /* of STACK_IMAGE() */
	__u8 asked;       /* the loader has been told that code is missing */
	__u8 looked;      /* it has looked then: what is missing still is nowhere */
	__u32 pad;
};

/*
 * Which file a mapping is of, as the kernel's inode tells. Other than stat() tells on overlayfs and
 * btrfs: the loader maps what it has opened and asks the kernel. An inode's number is used again:
 * generation, size and time of modification tell. All 0: the vdso.
 */
struct unwind_file_key {
	__u64 inode;
	__u64 size;
	__u64 modified_ns;
	__u32 superblock; /* of those that are mounted at a time */
	__u32 generation;
};

/* Executable segments as they are mapped whole, in 4096 bytes of the file. */
#define UNWIND_EXTENTS 3
struct unwind_extent {
	__u32 first;
	__u32 length; /* 0: none */
	__u64 bias;   /* a mapping's is its start less this */
};

/* A file that the loader has read, for processes whose mappings it has not. */
struct unwind_file {
	__u32 page; /* as in struct unwind_mapping */
	__u32 pages;
	__u32 file;
	__u32 pad;
	struct unwind_extent extents[UNWIND_EXTENTS];
};

/* A file that a stack has passed and that the loader has not read (bpf/lib/unread_file.bpf.h). */
#define UNWIND_UNREAD 0xfffffffffffffffeULL /* no record begins with this time */

struct unwind_unread {
	__u64 mark;
	__u32 tgid; /* as in struct stack_process */
	__u32 kind; /* enum path_kind */
	struct text text;
	__u32 pad;
};

/* What the loader's question about an address of its own is answered with. */
struct unwind_answer {
	struct unwind_file_key key;
	__u64 start; /* of the mapping; 0: not found */
	__u64 end;
	__u64 page; /* of the file, that is mapped at the start */
};

#define UNWIND_RULES 16384
#define UNWIND_PAGES 65536
#define UNWIND_MAPPINGS 65536

#endif
