// Exports what Ruby 3.3 exports, with made objects. pretend_ruby KIND: prints a line, and
// runs until killed, in a function that looks like the interpreter's loop.
//   escapes  two methods and one written in C; their names contain control characters
//   endless  frames without end, all the same
//   beyond   a stack that reaches far behind the memory
//   wild     pointers to nowhere
//   outside  an instruction that is not in the code
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))

enum { LAST = 0x20, OF_C = 0x80, METHOD = 0x11110001, METHOD_IN_C = 0x55550001 };
enum { ARRAY = 7, ELSEWHERE = 0x2000, EMBEDDED = 0x2000, METHOD_ENTRY = 6 << 12 };
enum { FRAMES = 100000, PLACES = 40, NUMBER = 200 };

struct frame {
	uint64_t *next, *values, *code, self, *environment, block, compiled;
};

struct context {
	struct frame *stack;
	uint64_t size;
	struct frame *current;
};

static __thread struct context *context;
VISIBLE const char ruby_version[] = "3.3.8";

VISIBLE uint64_t rb_current_receiver(void)
{
	struct context *c = context;

	return c && c->current ? c->current->self : 0;
}

static struct {
	uint32_t last, pad;
	void *by_name;
	uint64_t *names;
} symbols = {.last = 100};

VISIBLE uint64_t *rb_id2str(uint32_t id)
{
	return id && id <= symbols.last ? symbols.names : 0;
}

#define FIVE(f, r, a, b, c, d, e) f(r##a) f(r##b) f(r##c) f(r##d) f(r##e)
#define TEN(f, r) FIVE(f, r, 0, 1, 2, 3, 4) FIVE(f, r, 5, 6, 7, 8, 9)
#define FORTY(f, r) TEN(f, r##1) TEN(f, r##2) TEN(f, r##3) TEN(f, r##4)
#define ALL(f) FORTY(f, 1) FORTY(f, 2) FORTY(f, 3) FORTY(f, 4)
#define ADDRESS(n) &&at_##n,
#define INSTRUCTION(n)                                                                             \
	at_##n : state = state * 6364136223846793005ULL + 0x##n##1;                                \
	goto *instructions[(state >> 33) % 160];

__attribute__((noinline, noclone)) uint64_t loop(uint64_t state)
{
	static const void *const instructions[] = {ALL(ADDRESS)};

	goto *instructions[state % 160];
	ALL(INSTRUCTION)
}

static struct frame frames[FRAMES];
static uint64_t environments[3][3], code[2][3], bodies[2][32], words[PLACES + 2];
static uint64_t texts[4][8], method[5], names[5], some[5], outer[1], elements[1024], path[5];
static uint32_t entries[2][3] = {{7}, {9}};
static uint64_t places[6];
static char long_text[] = "bad\033[2Jmethod in C, whose name is not in the object";

static uint64_t text(int i, const char *chars)
{
	texts[i][2] = strlen(chars);
	memcpy(&texts[i][3], chars, strlen(chars));
	return (uint64_t)texts[i];
}

static void array(uint64_t *object, uint64_t *of)
{
	object[0] = ARRAY;
	object[4] = (uint64_t)of;
}

static void make_code(int i, const char *name, int line)
{
	code[i][2] = (uint64_t)bodies[i];
	bodies[i][0] = (uint64_t)PLACES << 32;
	bodies[i][1] = (uint64_t)words;
	bodies[i][8] = (uint64_t)path;
	bodies[i][10] = text(i, name);
	bodies[i][11] = (uint64_t)line;
	bodies[i][14] = (uint64_t)entries;
	bodies[i][16] = 2;
	bodies[i][17] = (uint64_t)places;
}

/* Places 0 to 9 have the first entry, others the second. */
static void make_lines(void)
{
	for (int at = 0; at < PLACES; at++)
		places[at / 9] |= (uint64_t)(at < 10 ? 1 : 2) << at % 9 * 7;
}

static void make_method(void)
{
	texts[3][0] = ELSEWHERE;
	texts[3][2] = strlen(long_text);
	texts[3][3] = (uint64_t)long_text;
	method[0] = METHOD_ENTRY;
	method[3] = NUMBER << 4;
	symbols.names = names;
	array(names, outer);
	outer[0] = (uint64_t)some;
	array(some, elements);
	elements[NUMBER * 2] = (uint64_t)texts[3];
}

int main(int argc, char **argv)
{
	static struct context it;
	const char *kind = argc > 1 ? argv[1] : "";

	path[0] = ARRAY | EMBEDDED;
	path[2] = text(2, "bad\033.rb");
	make_code(0, "bad\033[31mouter", 5);
	make_code(1, "bad\ninner", 8);
	make_lines();
	make_method();
	environments[0][2] = METHOD;
	environments[1][0] = (uint64_t)method;
	environments[1][2] = METHOD_IN_C | OF_C;
	environments[2][2] = METHOD | LAST;
	frames[0] = (struct frame){
		.next = words + 3, .code = code[1], .environment = environments[0] + 2};
	frames[1] = (struct frame){.environment = environments[1] + 2};
	frames[2] = (struct frame){
		.next = words + 20, .code = code[0], .environment = environments[2] + 2};
	it = (struct context){frames, 4 * sizeof(struct frame) / 8, frames};
	context = &it;
	if (!strcmp(kind, "endless") || !strcmp(kind, "beyond"))
		for (int i = 0; i < FRAMES; i++)
			frames[i] = frames[0];
	if (!strcmp(kind, "endless"))
		it.size = sizeof(frames) / 8;
	if (!strcmp(kind, "beyond")) {
		it.size = ~0ULL >> 8;
		it.current = frames + FRAMES - 3;
	}
	if (!strcmp(kind, "wild"))
		frames[0].code = (uint64_t *)0x4141414141414000;
	if (!strcmp(kind, "outside"))
		frames[0].next = words + PLACES + 1;
	puts("ready");
	fflush(stdout);
	return (int)(loop(1) + rb_current_receiver() + (uint64_t)rb_id2str(1));
}
