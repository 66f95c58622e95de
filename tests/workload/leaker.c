/* Allocates and frees in known functions, and tells what it still holds by each of them. */
#include "workload.h"

#include <linux/bpf.h>
#include <sys/eventfd.h>

static uint64_t rounds = 10, threads = 1, blocks, block_bytes = 64, children, churn;
static uint64_t eventfds, closed, pipes, percpu_maps;
static bool no_mappings;

/* What is held from each function. */
enum place {
	MALLOC,
	CALLOC,
	GROWN,
	SHRUNK,
	FAILED_REALLOC,
	FAILED_ARRAY,
	REALLOCARRAY,
	POSIX_MEMALIGN,
	ALIGNED_ALLOC,
	VALLOC,
	MEMALIGN,
	PVALLOC,
	EMPTY,
	HANDED_OVER,
	MAPPED,
	CUT_HEAD,
	CUT_TAIL,
	CUT_MIDDLE,
	REMAPPED,
	TOY,
	BLOCKS,
	PLACES
};

static const char *const names[PLACES] = {
	"leak_malloc",	       "leak_calloc",	    "leak_grown",	 "leak_shrunk",
	"leak_failed_realloc", "leak_failed_array", "leak_reallocarray", "leak_posix_memalign",
	"leak_aligned_alloc",  "leak_valloc",	    "leak_memalign",	 "leak_pvalloc",
	"leak_empty",	       "leak_handed_over",  "leak_mapped",	 "leak_cut_head",
	"leak_cut_tail",       "leak_cut_middle",   "leak_remapped",	 "leak_toy",
	"leak_blocks",
};

static struct {
	uint64_t bytes, count;
} holds[PLACES];

/* The compiler must not know what becomes of a block. */
static __thread void *volatile sink;
static __thread volatile size_t hidden;

static size_t hide(size_t n)
{
	hidden = n;
	return hidden;
}

static void hold(enum place place, void *block, uint64_t bytes, uint64_t count)
{
	if (!block || block == MAP_FAILED)
		wl_die(WL_FAILED, "%s: %m", names[place]);
	sink = block;
	__atomic_add_fetch(&holds[place].bytes, bytes, __ATOMIC_RELAXED);
	__atomic_add_fetch(&holds[place].count, count, __ATOMIC_RELAXED);
}

#define FRAMED __attribute__((noinline, noipa))

static FRAMED void leak_malloc(size_t n)
{
	hold(MALLOC, malloc(hide(n)), n, 1);
	sink = malloc(hide(n));
	free(sink);
	free(NULL);
}

static FRAMED void leak_calloc(size_t n)
{
	hold(CALLOC, calloc(3, hide(n)), 3 * n, 1);
	sink = calloc(hide(SIZE_MAX / 2), 4);
	if (sink)
		wl_die(WL_FAILED, "calloc gave what it cannot have");
}

static FRAMED void leak_grown(size_t n)
{
	sink = malloc(hide(10));
	for (size_t size = 20; size < n; size *= 2)
		sink = realloc(sink, hide(size));
	hold(GROWN, realloc(sink, hide(2 * n)), 2 * n, 1);
}

static FRAMED void leak_shrunk(size_t n)
{
	sink = realloc(NULL, hide(8 * n));
	hold(SHRUNK, realloc(sink, hide(n)), n, 1);
	sink = malloc(hide(n));
	sink = realloc(sink, hide(0)); /* frees */
}

static FRAMED void leak_failed_realloc(size_t n)
{
	void *block = malloc(hide(n));

	hold(FAILED_REALLOC, block, n, 1);
	sink = realloc(block, hide(SIZE_MAX / 2 - 4096));
	if (sink)
		wl_die(WL_FAILED, "realloc gave what it cannot have");
}

/* The product is 0, but for its overflow. */
static FRAMED void leak_failed_array(size_t n)
{
	void *block = malloc(hide(n));

	hold(FAILED_ARRAY, block, n, 1);
	sink = reallocarray(block, hide(SIZE_MAX / 2 + 1), 2);
	if (sink)
		wl_die(WL_FAILED, "reallocarray gave what it cannot have");
}

static FRAMED void leak_reallocarray(size_t n)
{
	sink = malloc(hide(n));
	hold(REALLOCARRAY, reallocarray(sink, 5, hide(n)), 5 * n, 1);
}

static FRAMED void leak_posix_memalign(size_t n)
{
	void *block = NULL;

	if (posix_memalign(&block, 64, hide(n)))
		block = NULL;
	hold(POSIX_MEMALIGN, block, n, 1);
	if (!posix_memalign(&block, 3, hide(n)) ||
	    !posix_memalign(&block, 64, hide(SIZE_MAX / 2 - 8192)))
		wl_die(WL_FAILED, "posix_memalign gave what it cannot have");
}

static FRAMED void leak_aligned_alloc(size_t n)
{
	hold(ALIGNED_ALLOC, aligned_alloc(64, hide(n)), n, 1);
}

static FRAMED void leak_valloc(size_t n)
{
	hold(VALLOC, valloc(hide(n)), n, 1);
}

void *memalign(size_t alignment, size_t size);
void *pvalloc(size_t size);

static FRAMED void leak_memalign(size_t n)
{
	hold(MEMALIGN, memalign(256, hide(n)), n, 1);
}

static FRAMED void leak_pvalloc(size_t n)
{
	hold(PVALLOC, pvalloc(hide(n)), n, 1);
}

static FRAMED void leak_empty(void)
{
	hold(EMPTY, malloc(hide(0)), 0, 1);
}

/* An allocator by other names. */
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
	hold(TOY, toy_malloc(hide(n)), n, 1);
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
	if (munmap(at, hide(pages * 4096)))
		wl_die(WL_FAILED, "munmap: %m");
}

static FRAMED void leak_mapped(void)
{
	hold(MAPPED, map(3), 3 * 4096, 1);
	unmap(map(5), 5);
	if (!munmap((void *)hide(1), 4096))
		wl_die(WL_FAILED, "munmap took a crooked address");
}

static FRAMED void leak_cut_head(void)
{
	char *at = map(8);

	hold(CUT_HEAD, at, 6 * 4096, 1);
	unmap(at, 2);
}

static FRAMED void leak_cut_tail(void)
{
	char *at = map(8);

	hold(CUT_TAIL, at, 5 * 4096, 1);
	unmap(at + 5 * 4096, 3);
}

/* One mapping is two now; where it was goes to another one, which is whole. */
static FRAMED void leak_cut_middle(void)
{
	char *at = map(8), *again;

	hold(CUT_MIDDLE, at, 6 * 4096, 2);
	unmap(at + 3 * 4096, 2);
	again = mmap(at + 3 * 4096, 2 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		     -1, 0);
	hold(CUT_MIDDLE, again, 2 * 4096, 1);
	/* Two mappings go by one call, the later one having taken a part of the other. */
	at = map(8);
	again = mmap(at + 4 * 4096, 4 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		     -1, 0);
	sink = again;
	unmap(at, 8);
}

static FRAMED void leak_remapped(void)
{
	char *at = map(4), *room = map(64);

	unmap(room, 64);
	at = mremap(at, 4 * 4096, hide(40 * 4096), MREMAP_MAYMOVE);
	hold(REMAPPED, at, 40 * 4096, 1);
	if (mremap(at, 40 * 4096, hide(SIZE_MAX / 2), 0) != MAP_FAILED)
		wl_die(WL_FAILED, "mremap gave what it cannot have");
}

/* ---- who calls ---- */

static FRAMED void leaker_middle(size_t n)
{
	leak_malloc(n);
	leak_calloc(n);
	leak_grown(n);
	leak_shrunk(n);
	leak_failed_realloc(n);
	leak_failed_array(n);
	leak_reallocarray(n);
	leak_posix_memalign(n);
	leak_aligned_alloc(n);
	leak_valloc(n);
	leak_memalign(n);
	leak_pvalloc(n);
	leak_empty();
	leak_toy(n);
	if (no_mappings)
		return;
	leak_mapped();
	leak_cut_head();
	leak_cut_tail();
	leak_cut_middle();
	leak_remapped();
}

static FRAMED void leaker_outer(void)
{
	for (uint64_t i = 0; i < rounds; i++)
		leaker_middle(100 + i % 50);
}

static FRAMED void leak_blocks(void)
{
	for (uint64_t i = 0; i < blocks; i++)
		hold(BLOCKS, malloc(hide(block_bytes)), block_bytes, 1);
}

/* Blocks that other threads free: every second one. */
static void *handed[1000];

static FRAMED void leak_handed_over(void)
{
	for (size_t i = 0; i < WL_COUNT(handed); i++)
		handed[i] = malloc(hide(48));
}

static void *free_half(void *arg)
{
	(void)arg;
	for (size_t i = 0; i < WL_COUNT(handed); i += 2)
		free(handed[i]);
	return NULL;
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

static void *thread_main(void *arg)
{
	(void)arg;
	leaker_outer();
	churn_blocks();
	return NULL;
}

/* Gives back what it has inherited and keeps its own; both end with it. */
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
		int fd = eventfd(0, EFD_CLOEXEC);

		if (fd < 0)
			wl_die(WL_CANNOT, "eventfd: %m");
		if (i < closed)
			close(fd);
	}
	for (uint64_t i = 0; i < pipes; i++) {
		int fd[2];

		if (pipe2(fd, O_CLOEXEC) || write(fd[1], "x", 1) != 1)
			wl_die(WL_CANNOT, "pipe: %m");
	}
	for (uint64_t i = 0; i < percpu_maps; i++) {
		union bpf_attr attr = {.map_type = BPF_MAP_TYPE_PERCPU_ARRAY,
				       .key_size = 4,
				       .value_size = 8,
				       .max_entries = 1};

		if (syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)) < 0)
			wl_die(WL_CANNOT, "percpu array: %m");
	}
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"rounds", WL_NUM, &rounds, "N", "of all kinds of allocations, in each thread"},
		{"threads", WL_NUM, &threads, "K", "with 1 the main thread does it"},
		{"no-mappings", WL_FLAG, &no_mappings, NULL, "no mmap in the rounds"},
		{"blocks", WL_NUM, &blocks, "N", "blocks of one size, by malloc"},
		{"block-bytes", WL_NUM, &block_bytes, "BYTES", "that size"},
		{"churn", WL_NUM, &churn, "N", "blocks that each thread frees again"},
		{"children", WL_NUM, &children, "N", "processes that leak the same and end"},
		{"eventfds", WL_NUM, &eventfds, "N", "kernel memory: event counters"},
		{"closed", WL_NUM, &closed, "N", "this many of them are closed at once"},
		{"pipes", WL_NUM, &pipes, "N", "kernel memory: a page each"},
		{"percpu-maps", WL_NUM, &percpu_maps, "N", "kernel memory: per-CPU arrays"},
		{0},
	};
	uint64_t bytes = 0, count = 0, began, took;
	pthread_t thread[64], freer;
	pid_t pid[64];

	wl_start(argc, argv, "leaker", "Holds a known amount of memory from known functions.",
		 opts);
	if (threads < 1 || threads > WL_COUNT(thread) || children > WL_COUNT(pid))
		wl_die(WL_USAGE, "want 1 to 64 threads and at most 64 children");
	/* What the machinery itself needs is there before it begins. */
	if (pthread_create(&freer, NULL, free_half, NULL) || pthread_join(freer, NULL))
		wl_die(WL_FAILED, "cannot make a thread");
	memset(handed, 0, sizeof(handed));
	wl_ready();

	began = wl_now();
	if (threads == 1)
		thread_main(NULL);
	for (uint64_t i = 0; threads > 1 && i < threads; i++)
		if (pthread_create(&thread[i], NULL, thread_main, NULL))
			wl_die(WL_FAILED, "cannot make a thread");
	for (uint64_t i = 0; threads > 1 && i < threads; i++)
		pthread_join(thread[i], NULL);
	leak_blocks();
	if (rounds) {
		leak_handed_over();
		if (pthread_create(&freer, NULL, free_half, NULL))
			wl_die(WL_FAILED, "cannot make a thread");
		pthread_join(freer, NULL);
		hold(HANDED_OVER, handed, 48 * WL_COUNT(handed) / 2, WL_COUNT(handed) / 2);
	}
	for (uint64_t i = 0; i < children; i++) {
		pid[i] = wl_fork();
		if (pid[i] == 0)
			child(handed[1]);
	}
	for (uint64_t i = 0; i < children; i++)
		if (wl_reap(pid[i]))
			wl_die(WL_FAILED, "a child failed");
	consume_kernel();
	took = wl_now() - began;

	wl_line_begin();
	wl_open("holds", '[');
	for (int i = 0; i < PLACES; i++) {
		if (!holds[i].count)
			continue;
		wl_open(NULL, '{');
		wl_str("function", names[i]);
		wl_u64("bytes", holds[i].bytes);
		wl_u64("count", holds[i].count);
		wl_close('}');
		bytes += holds[i].bytes;
		count += holds[i].count;
	}
	wl_close(']');
	wl_open("children", '[');
	for (uint64_t i = 0; i < children; i++)
		wl_i64(NULL, pid[i]);
	wl_close(']');
	wl_u64("bytes", bytes);
	wl_u64("count", count);
	wl_u64("took_ns", took);
	wl_finish();
	return WL_OK;
}
