/* Allocates and frees in known functions, and reports the memory still held by each of them. */
#include "workload.h"

#include <linux/bpf.h>
#include <sys/eventfd.h>

WL_NUMBER("rounds", rounds, 10, "of all kinds of allocations, in each thread");
WL_BOUNDED("threads", threads, 1, 1, 64, "with 1 the main thread does it");
WL_FLAG("no-mappings", no_mappings, "no mmap in the rounds");
WL_NUMBER("blocks", blocks, 0, "blocks of one size, by malloc");
WL_NUMBER("block-bytes", block_bytes, 64, "that size");
WL_NUMBER("churn", churn, 0, "blocks that each thread frees again");
WL_BOUNDED("children", children, 0, 0, 64, "processes that leak the same and end");
WL_NUMBER("eventfds", eventfds, 0, "kernel memory: event counters");
WL_NUMBER("closed", closed, 0, "this many of them are closed at once");
WL_NUMBER("pipes", pipes, 0, "kernel memory: a page each");
WL_NUMBER("percpu-maps", percpu_maps, 0, "kernel memory: per-CPU arrays");

/* Memory held from each function. */
static struct {
	const char *function;
	uint64_t bytes, count;
} holds[32];

/* The compiler must not know how a block is used. */
static __thread void *volatile sink;
static __thread volatile size_t hidden;

static size_t hide(size_t n)
{
	hidden = n;
	return hidden;
}

static void hold(const char *function, void *block, uint64_t bytes, uint64_t count)
{
	const char *none = NULL;
	size_t i = 0;

	fail_if(!block || block == MAP_FAILED, function);
	sink = block;
	while (!__atomic_compare_exchange_n(&holds[i].function, &none, function, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
	       none != function) {
		none = NULL;
		i++;
	}
	__atomic_add_fetch(&holds[i].bytes, bytes, __ATOMIC_RELAXED);
	__atomic_add_fetch(&holds[i].count, count, __ATOMIC_RELAXED);
}

/* Checks that an impossible request failed. */
static void refused(bool well)
{
	fail_if(!well, "a call gave what it cannot have");
}

#define FRAMED __attribute__((noinline, noipa))

static FRAMED void leak_malloc(size_t n)
{
	hold(__func__, malloc(hide(n)), n, 1);
	sink = malloc(hide(n));
	free(sink);
	free(NULL);
}

static FRAMED void leak_calloc(size_t n)
{
	hold(__func__, calloc(3, hide(n)), 3 * n, 1);
	sink = calloc(hide(SIZE_MAX / 2), 4);
	refused(!sink);
}

static FRAMED void leak_grown(size_t n)
{
	sink = malloc(hide(10));
	for (size_t size = 20; size < n; size *= 2)
		sink = realloc(sink, hide(size));
	hold(__func__, realloc(sink, hide(2 * n)), 2 * n, 1);
}

static FRAMED void leak_shrunk(size_t n)
{
	sink = realloc(NULL, hide(8 * n));
	hold(__func__, realloc(sink, hide(n)), n, 1);
	sink = malloc(hide(n));
	sink = realloc(sink, hide(0)); /* frees */
}

static FRAMED void leak_failed_realloc(size_t n)
{
	void *block = malloc(hide(n));

	hold(__func__, block, n, 1);
	sink = realloc(block, hide(SIZE_MAX / 2 - 4096));
	refused(!sink);
}

/* The product would be 0, except that it overflows. */
static FRAMED void leak_failed_array(size_t n)
{
	void *block = malloc(hide(n));

	hold(__func__, block, n, 1);
	sink = reallocarray(block, hide(SIZE_MAX / 2 + 1), 2);
	refused(!sink);
}

static FRAMED void leak_reallocarray(size_t n)
{
	sink = malloc(hide(n));
	hold(__func__, reallocarray(sink, 5, hide(n)), 5 * n, 1);
}

static FRAMED void leak_posix_memalign(size_t n)
{
	void *block;

	check(!posix_memalign(&block, 64, hide(n)), __func__);
	hold(__func__, block, n, 1);
	refused(posix_memalign(&block, 3, hide(n)) &&
		posix_memalign(&block, 64, hide(SIZE_MAX / 2 - 8192)));
}

void *memalign(size_t alignment, size_t size);
void *pvalloc(size_t size);

#define LEAKS(function, block)                                                                     \
	static FRAMED void leak_##function(size_t n)                                               \
	{                                                                                          \
		hold(__func__, block, n, 1);                                                       \
	}

LEAKS(aligned_alloc, aligned_alloc(64, hide(n)))
LEAKS(valloc, valloc(hide(n)))
LEAKS(memalign, memalign(256, hide(n)))
LEAKS(pvalloc, pvalloc(hide(n)))

static FRAMED void leak_empty(size_t)
{
	hold(__func__, malloc(hide(0)), 0, 1);
}

/* An allocator under other names. */
FRAMED void *toy_malloc(size_t n)
{
	void *block = malloc(n);

	asm volatile("" : : "r"(block) : "memory");
	return block;
}

FRAMED void toy_free(void *block)
{
	free(block);
	asm volatile("" : : : "memory");
}

static FRAMED void leak_toy(size_t n)
{
	hold(__func__, toy_malloc(hide(n)), n, 1);
	sink = toy_malloc(hide(n));
	toy_free(sink);
}

/* ---- mappings ---- */

static FRAMED void *map(size_t pages)
{
	void *at = mmap(NULL, hide(pages * 4096), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	asm volatile("" : : "r"(at) : "memory");
	return at;
}

static void unmap(void *at, size_t pages)
{
	fail_if(munmap(at, hide(pages * 4096)), "munmap");
}

static FRAMED void leak_mapped(void)
{
	hold(__func__, map(3), 3 * 4096, 1);
	unmap(map(5), 5);
	refused(munmap((void *)hide(1), 4096));
}

static FRAMED void leak_cut_head(void)
{
	char *at = map(8);

	hold(__func__, at, 6 * 4096, 1);
	unmap(at, 2);
}

static FRAMED void leak_cut_tail(void)
{
	char *at = map(8);

	hold(__func__, at, 5 * 4096, 1);
	unmap(at + 5 * 4096, 3);
}

/* One mapping becomes two; a new, complete mapping takes the range between them. */
static FRAMED void leak_cut_middle(void)
{
	const int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
	char *at = map(8), *again;

	hold(__func__, at, 6 * 4096, 2);
	unmap(at + 3 * 4096, 2);
	again = mmap(at + 3 * 4096, 2 * 4096, PROT_READ, fixed, -1, 0);
	hold(__func__, again, 2 * 4096, 1);
	/* One call unmaps two mappings, the later one having replaced part of the other. */
	at = map(8);
	sink = mmap(at + 4 * 4096, 4 * 4096, PROT_READ, fixed, -1, 0);
	unmap(at, 8);
}

static FRAMED void leak_remapped(void)
{
	char *at = map(4), *room = map(64);

	unmap(room, 64);
	at = mremap(at, 4 * 4096, hide(40 * 4096), MREMAP_MAYMOVE);
	hold(__func__, at, 40 * 4096, 1);
	refused(mremap(at, 40 * 4096, hide(SIZE_MAX / 2), 0) == MAP_FAILED);
}

/* ---- callers ---- */

static FRAMED void leaker_middle(size_t n)
{
	static void (*const by_size[])(size_t) = {
		leak_malloc,	     leak_calloc,	leak_grown,	   leak_shrunk,
		leak_failed_realloc, leak_failed_array, leak_reallocarray, leak_posix_memalign,
		leak_aligned_alloc,  leak_valloc,	leak_memalign,	   leak_pvalloc,
		leak_empty,	     leak_toy};
	static void (*const by_mapping[])(void) = {leak_mapped, leak_cut_head, leak_cut_tail,
						   leak_cut_middle, leak_remapped};

	for (size_t i = 0; i < WL_COUNT(by_size); i++)
		by_size[i](n);
	for (size_t i = 0; i < WL_COUNT(by_mapping) && !no_mappings; i++)
		by_mapping[i]();
}

static FRAMED void leaker_outer(void)
{
	for (uint64_t i = 0; i < rounds; i++)
		leaker_middle(100 + i % 50);
}

static FRAMED void leak_blocks(void)
{
	for (uint64_t i = 0; i < blocks; i++)
		hold(__func__, malloc(hide(block_bytes)), block_bytes, 1);
}

/* Blocks of which other threads free every second one. */
static void *handed[1000];

static FRAMED void leak_handed_over(void)
{
	for (size_t i = 0; i < WL_COUNT(handed); i++)
		handed[i] = malloc(hide(48));
}

static void *free_half(void *unused)
{
	for (size_t i = 0; i < WL_COUNT(handed); i += 2)
		free(handed[i]);
	return unused;
}

static FRAMED void churn_blocks(void)
{
	void *volatile *many = calloc(64, sizeof(*many));

	for (uint64_t i = 0; i < churn; i++) {
		free(many[i % 64]);
		many[i % 64] = malloc(16 + i % 1000);
	}
	for (int i = 0; i < 64; i++)
		free(many[i]);
	free((void *)many);
}

static void *thread_main(void *unused)
{
	leaker_outer();
	churn_blocks();
	return unused;
}

/* Frees the inherited block and keeps its own blocks; all end with the child. */
static FRAMED void child(void *inherited)
{
	free(inherited);
	leaker_outer();
	_exit(0);
}

/* ---- kernel memory ---- */

static void consume_kernel(void)
{
	struct rlimit files = {1 << 16, 1 << 16};

	setrlimit(RLIMIT_NOFILE, &files);
	for (uint64_t i = 0; i < eventfds; i++) {
		int fd = can(eventfd(0, EFD_CLOEXEC), "eventfd");
		if (i < closed)
			close(fd);
	}
	for (uint64_t i = 0; i < pipes; i++) {
		int fd[2];

		wl_pipe(fd);
		wl_tell(fd);
	}
	for (uint64_t i = 0; i < percpu_maps; i++) {
		union bpf_attr attr = {.map_type = BPF_MAP_TYPE_PERCPU_ARRAY,
				       .key_size = 4,
				       .value_size = 8,
				       .max_entries = 1};

		cannot_if(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)) < 0,
			  "percpu array");
	}
}

static int workload(void)
{
	uint64_t bytes = 0, count = 0;
	pid_t pid[64];

	/* Allocations of the C library itself are made before tracing. */
	wl_threads(1, free_half, NULL, 0);
	memset(handed, 0, sizeof(handed));
	wl_ready();

	uint64_t began = wl_now();
	if (threads == 1)
		thread_main(NULL);
	else
		wl_threads(threads, thread_main, NULL, 0);
	leak_blocks();
	if (rounds) {
		leak_handed_over();
		wl_threads(1, free_half, NULL, 0);
		hold("leak_handed_over", handed, 48 * WL_COUNT(handed) / 2, WL_COUNT(handed) / 2);
	}
	for (uint64_t i = 0; i < children; i++) {
		pid[i] = wl_fork();
		if (pid[i] == 0)
			child(handed[1]);
	}
	for (uint64_t i = 0; i < children; i++)
		check(!wl_reap(pid[i]), "a child");
	consume_kernel();
	uint64_t took = wl_now() - began;

	wl_open("holds", '[');
	for (size_t i = 0; i < WL_COUNT(holds) && holds[i].function; i++) {
		wl_object(NULL, "function %s bytes %lu count %lu", holds[i].function,
			  holds[i].bytes, holds[i].count);
		bytes += holds[i].bytes;
		count += holds[i].count;
	}
	wl_close(']');
	wl_pids("children", pid, children, sizeof(*pid));
	return wl_result("bytes %lu count %lu took_ns %lu", bytes, count, took);
}
