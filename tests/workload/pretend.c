// Exports what CPython 3.12 exports, with wrong structures. pretend KIND: runs until killed.
//   frames   one frame that is its own caller, of a code object whose texts cannot be read
//   threads  a list of threads that never ends and does not have this one
//   wild     pointers to nowhere
//   escapes  one frame; its names contain control characters
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

__attribute__((visibility("default"))) uint64_t _PyRuntime[64];
__attribute__((visibility("default"))) uint64_t PyCode_Type[8];
__attribute__((visibility("default"))) const uint64_t Py_Version = 0x030c01f0;

static uint64_t interpreter[32], thread[32], other_thread[32], c_frame[2], frame[16], code[32];
static uint64_t name[16], file[16], lines[16];

static void text(uint64_t *object, const char *bytes)
{
	object[2] = strlen(bytes);
	object[4] = 1 << 2 | 1 << 5 | 1 << 6; // one byte per character, compact, ASCII
	memcpy((char *)object + 40, bytes, strlen(bytes));
}

static void one_frame(void)
{
	_PyRuntime[6] = (uint64_t)interpreter;
	interpreter[9] = (uint64_t)thread;
	thread[17] = (uint64_t)pthread_self();
	thread[7] = (uint64_t)c_frame;
	c_frame[0] = (uint64_t)frame;
	frame[0] = (uint64_t)code;
	frame[7] = (uint64_t)code + 192;
	code[1] = (uint64_t)PyCode_Type;
	code[14] = (uint64_t)file;
	code[16] = (uint64_t)name;
	code[17] = (uint64_t)lines;
}

__attribute__((noinline)) void busy_for_ever(void)
{
	for (volatile unsigned long i = 0;; i++)
		;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";

	one_frame();
	if (!strcmp(kind, "frames")) {
		frame[1] = (uint64_t)frame;
		name[2] = file[2] = lines[2] = ~0ULL;
		name[4] = file[4] = ~0ULL;
	} else if (!strcmp(kind, "threads")) {
		thread[17] = 1;
		thread[1] = (uint64_t)other_thread;
		other_thread[1] = (uint64_t)thread;
	} else if (!strcmp(kind, "wild")) {
		frame[0] = 0xdead0000dead0000ULL;
		frame[1] = 0x7ffffffff000ULL;
	} else if (!strcmp(kind, "escapes")) {
		text(name, "bad\033[31m\nname;x");
		text(file, "/tmp/\033]0;file\007.py");
	} else {
		return 2;
	}
	puts("ready");
	fflush(stdout);
	busy_for_ever();
}
