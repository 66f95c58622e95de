/* Grows and shrinks its heap by known calls. */
#include "workload.h"

static uint64_t count = 100, bytes = 65536, shrinks = 10, questions = 50, maps = 20;

static char *move_break(char *to)
{
	return (char *)syscall(SYS_brk, to);
}

__attribute__((noinline)) static void workload_grow(void)
{
	for (uint64_t i = 0; i < count; i++) {
		char *end = move_break(NULL) + bytes;

		if (move_break(end) != end)
			wl_die(WL_CANNOT, "brk: %m");
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
		void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

		if (at == MAP_FAILED)
			wl_die(WL_CANNOT, "mmap: %m");
		/* What fails is no growth. */
		if (mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
			wl_die(WL_FAILED, "mmap of nothing");
		munmap(at, bytes);
	}
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"count", WL_NUM, &count, "N", "times that the heap grows"},
		{"bytes", WL_NUM, &bytes, "BYTES", "each time"},
		{"shrinks", WL_NUM, &shrinks, "N",
		 "times that it shrinks as much, at most --count"},
		{"questions", WL_NUM, &questions, "N", "times that its end is asked for"},
		{"maps", WL_NUM, &maps, "N", "anonymous mappings"},
		{0},
	};

	wl_start(argc, argv, "grower", "Grows and shrinks its heap.", opts);
	if (shrinks > count)
		wl_die(WL_USAGE, "--shrinks is above --count");
	wl_ready();
	workload_grow();
	workload_shrink();
	for (uint64_t i = 0; i < questions; i++)
		move_break(NULL);
	workload_map();
	wl_line_begin();
	wl_u64("grows", count);
	wl_u64("grown_bytes", count * bytes);
	wl_u64("shrinks", shrinks);
	wl_u64("shrunk_bytes", shrinks * bytes);
	wl_u64("changes", count + shrinks);
	wl_u64("maps", maps);
	wl_u64("mapped_bytes", maps * bytes);
	wl_finish();
	return WL_OK;
}
