/* The kernel program's walk of user stacks, compiled for the host (walk.c): its maps are memory of
 * the test's. */
#ifndef CORETAP_HOST_WALK_H
#define CORETAP_HOST_WALK_H

#include <stdbool.h>

#include "lib/shared.h"
#include "lib/unwind.h"

#ifdef __cplusplus
extern "C" {
#endif

struct host_registers {
	__u64 ip, sp, bp, bx, di, r10;
};

struct host_task {
	struct host_registers registers;
	__u32 cs;
	bool has_mm, is_kernel_thread, executes;
};

/* Exactly as large as what they point to: one step beyond is an error of memory. */
struct host_mapping {
	__u64 start, end, page, inode;
};

struct host_file {
	struct unwind_file_key key;
	struct unwind_file file;
};

struct host_maps {
	struct unwind_rule *rules;
	__u32 rule_count;
	struct unwind_page *pages;
	__u32 page_count;
	struct unwind_mapping *mappings;
	__u32 mapping_count;
	__u32 **chunks; /* of UNWIND_CHUNK_ROWS; NULL: not there */
	__u32 chunk_count;
	struct unwind_process *process; /* NULL: not known */
	struct host_mapping *tree;	/* as the kernel has it */
	__u32 tree_count;
	__u64 vdso;
	struct host_file *files;
	__u32 file_count;
};

struct host_walk {
	long frames;
	struct stack stack;
	__u64 hash;
	bool unknown_map;
	__u32 reads; /* of user memory */
};

#define HOST_CS 0x33

extern struct host_maps host_maps;
extern bool host_old_kernel; /* registers are read by the task's stack */
extern __u32 stack_depth;    /* frames at most */

/* Of the program that host_maps.process is of. */
void host_walk_user(const struct host_task *task, struct host_walk *found);
/* As the loader is asked about missing code. */
bool host_ask(void);
__u64 host_program(void);
__u64 host_hash(const __u64 *ips, __u32 count);

/* What the loader was told last, and how often. */
extern struct stack_process host_news;
extern __u32 host_news_count;
extern bool host_news_full; /* it cannot be told */

void host_forked(__u32 tgid);
void host_executed(void);
void host_exited(bool all_threads);
/* With the stack that was walked last. */
void host_meet(bool executed_before);
struct unwind_process *host_process(__u64 program);
void host_forget(void); /* all of these */

#ifdef __cplusplus
}
#endif

#endif
