/* Grows and shrinks its heap by known calls. */
#include "workload.h"

WL_BOUNDED("count", count, 100, 10, UINT64_MAX, "times that the heap grows");
WL_NUMBER("bytes", bytes, 65536, "each time");
WL_NUMBER("maps", maps, 20, "anonymous mappings");
static const uint64_t shrinks = 10, questions = 50;

static char *move_break(char *to)
{
	return (char *)syscall(SYS_brk, to);
}

__attribute__((noinline)) static void workload_grow(void)
{
	for (uint64_t i = 0; i < count; i++) {
		char *end = move_break(NULL) + bytes;

		cannot_if(move_break(end) != end, "brk");
	}
}

__attribute__((noinline)) static void workload_shrink(void)
{
	for (uint64_t i = 0; i < shrinks; i++)
		move_break(move_break(NULL) - bytes);
}

__attribute__((noinline)) static void workload_map(void)
{
	for (uint64_t i = 0; i < maps; i++) {
		void *at = wl_anonymous(bytes);

		/* Failing calls are not growth. */
		check(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED,
		      "mmap of nothing");
		munmap(at, bytes);
	}
}

static int workload(void)
{
	wl_ready();
	workload_grow();
	workload_shrink();
	for (uint64_t i = 0; i < questions; i++)
		move_break(NULL);
	workload_map();
	return wl_result("grows %lu grown_bytes %lu shrinks %lu shrunk_bytes %lu changes %lu "
			 "maps %lu mapped_bytes %lu",
			 count, count * bytes, shrinks, shrinks * bytes, count + shrinks, maps,
			 maps * bytes);
}
