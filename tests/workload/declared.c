/* Calls functions whose parameters are in the debug information, with values that depend on the
 * number of the call. */
#include "workload.h"

enum state { IDLE = 1, BUSY = 7 };

struct point {
	int x, y;
};

struct request {
	const char *path;
	struct point at;
	unsigned int flags : 3, kind : 5, rest : 24;
	enum state state;
	struct request *next;
	union {
		long number;
		char text[16];
	};
	short sizes[2][3];
	double weight;
	signed char small;
};

struct large {
	long values[4];
};

typedef struct request request_t;

WL_NUMBER("calls", calls, 5, "calls of each function");
static volatile uint64_t sink;

/* Called as declared: never removed, merged or changed. */
#define EXACT __attribute__((noipa))

EXACT long handle_request(request_t *r, double ratio, const int count, char tail)
{
	sink += (uint64_t)(ratio * count) + (uint64_t)tail + (uint64_t)r->number;
	return -count;
}

EXACT int by_value(int before, struct point p, int after)
{
	sink += (uint64_t)(before + p.x + after);
	return before;
}

EXACT struct large large_result(int seed)
{
	struct large all = {{seed, 2, 3, 4}};

	sink += (uint64_t)seed;
	return all;
}

EXACT void a_result(void)
{
	sink++;
}

EXACT double ratio_of(int n)
{
	return n / 2.0;
}

EXACT request_t *next_of(request_t *r)
{
	sink++;
	return r->next;
}

static int workload(void)
{
	wl_ready();
	for (uint64_t i = 0; i < calls; i++) {
		const int n = (int)i;
		request_t last = {.path = "last", .number = 100 + n, .small = (signed char)-n};
		request_t first = {.path = "first",
				   .at = {n, -n},
				   .flags = i % 8,
				   .kind = i % 32,
				   .rest = i,
				   .state = i % 2 ? BUSY : IDLE,
				   .next = &last,
				   .text = "inside",
				   .sizes = {{0, 1, 2}, {3, (short)(10 * n), 5}},
				   .weight = 1.5};

		handle_request(&first, 0.5, n, 't');
		by_value(n, (struct point){n, n}, n + 50);
		sink += (uint64_t)large_result(n).values[0];
		sink += (uint64_t)next_of(&first)->number;
		a_result();
		sink += (uint64_t)ratio_of(n);
	}
	return wl_result("calls %lu", calls);
}
