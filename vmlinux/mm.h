/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory: address spaces, pages, zones, slabs. */
#pragma once

/* include/linux/mm_types.h, include/linux/mm.h */
struct percpu_counter {
	s64 count;
};

/* include/linux/maple_tree.h: the mappings since 6.1; before, a tree of rb_nodes */
enum maple_type {
	maple_dense,
	maple_leaf_64,
	maple_range_64,
	maple_arange_64,
};

struct maple_range_64 {
	void *parent;
	unsigned long pivot[15];
	void *slot[16];
};

struct maple_arange_64 {
	void *parent;
	unsigned long pivot[9];
	void *slot[10];
};

struct maple_tree {
	void *ma_root;
};

/* arch/x86/include/asm/mmu.h, arch/arm64/include/asm/mmu.h */
typedef struct {
	void *vdso;
} mm_context_t;

struct mm_struct {
	struct maple_tree mm_mt;
	struct percpu_counter rss_stat[4];
	struct rw_semaphore mmap_lock;
	unsigned long start_brk;
	unsigned long brk;
	unsigned long start_stack;
	struct task_struct *owner;
	unsigned long arg_start;
	unsigned long arg_end;
	mm_context_t context;
};

struct vm_operations_struct;

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags;
	const struct vm_operations_struct *vm_ops;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long pgoff;
};

typedef struct {
	unsigned long f;
} memdesc_flags_t;

struct page {
	struct address_space *mapping;
};

struct folio {
	memdesc_flags_t flags;
	struct address_space *mapping;
	unsigned long index;
	unsigned long _flags_1;
};

/* include/linux/rmap.h: the mappings that anonymous pages can be in */
struct anon_vma {
	struct rb_root_cached rb_root;
};

struct anon_vma_chain {
	struct vm_area_struct *vma;
	struct rb_node rb;
};

/* include/linux/page-flags.h: its numbers depend on the kernel's configuration */
enum pageflags {
	PG_writeback = 1,
	PG_uptodate = 3,
	PG_dirty = 4,
	PG_head = 6,
	PG_swapbacked = 17,
};

/* include/linux/migrate_mode.h: before 5.15 another number */
enum migrate_reason {
	MR_NUMA_MISPLACED = 5,
};

/* include/linux/pagemap.h */
struct readahead_control {
	struct address_space *mapping;
	unsigned long _index;
};

/* include/linux/mmzone.h */
enum zone_stat_item {
	NR_FREE_PAGES = 0,
};

struct free_area {
	unsigned long nr_free;
};

/* Programs count with the running kernel's sizes of free_area and of its elements. */
struct zone {
	unsigned long _watermark[4];
	unsigned long watermark_boost;
	int node;
	const char *name;
	struct free_area free_area[11];
	atomic_long_t vm_stat[12];
};

/* include/linux/mmzone.h: a zonelist has MAX_NUMNODES * MAX_NR_ZONES elements, and one for its end
 */
enum zone_type {
	__MAX_NR_ZONES = 5,
};

struct zoneref {
	struct zone *zone;
	int zone_idx;
};

struct zonelist {
	struct zoneref _zonerefs[5121];
};

struct lruvec {
	atomic_long_t nonresident_age;
};

/* include/linux/memcontrol.h */
struct mem_cgroup_per_node {
	struct lruvec lruvec;
};

/* mm/internal.h */
struct compact_control {
	struct zone *zone;
	unsigned long total_migrate_scanned;
	unsigned long total_free_scanned;
	int order;
	bool direct_compaction;
	bool proactive_compaction;
};

/* include/linux/shrinker.h */
struct shrink_control;

struct shrinker {
	unsigned long (*scan_objects)(struct shrinker *shrinker, struct shrink_control *sc);
	const char *name;
};

/* include/linux/vmstat.h */
struct reclaim_stat {
	unsigned int nr_dirty;
	unsigned int nr_writeback;
};

/* include/linux/compaction.h */
enum compact_result {
	COMPACT_NOT_SUITABLE_ZONE,
	COMPACT_SKIPPED,
	COMPACT_DEFERRED,
	COMPACT_NO_SUITABLE_PAGE,
	COMPACT_CONTINUE,
	COMPACT_COMPLETE,
	COMPACT_PARTIAL_SKIPPED,
	COMPACT_CONTENDED,
	COMPACT_SUCCESS,
};

/* mm/slab.h */
struct kmem_cache {
	unsigned int size;
	const char *name;
};
