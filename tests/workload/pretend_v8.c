// Exports what V8 11.3 exports (or MAJOR.3), with wrong objects. pretend_v8 KIND: runs until
// killed, in code that it has made itself.
//   escapes  one function; its names contain control characters
//   itself   objects that have themselves as members
//   wild     pointers to nowhere
//   long     texts and scopes without end
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MAJOR
#define MAJOR 11
#endif
#define FACT(name, value) __attribute__((visibility("default"))) int name = value

FACT(_ZN2v88internal7Version6major_E, MAJOR);
FACT(_ZN2v88internal7Version6minor_E, 3);
FACT(v8dbg_off_fp_context, -8);
FACT(v8dbg_off_fp_function, -16);
FACT(v8dbg_class_JSFunction__shared__SharedFunctionInfo, 24);
FACT(v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object, 16);
FACT(v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject, 32);
FACT(v8dbg_class_SharedFunctionInfo__function_data__Object, 8);
FACT(v8dbg_class_SharedFunctionInfo__flags__int, 48);
FACT(v8dbg_class_Script__source__Object, 8);
FACT(v8dbg_class_Script__name__Object, 16);
FACT(v8dbg_scopeinfo_idx_first_vars, 3);
FACT(v8dbg_scopeinfo_idx_ncontextlocals, 2);
FACT(v8dbg_class_Map__instance_type__uint16_t, 12);
FACT(v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE, 262);
FACT(v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE, 261);
FACT(v8dbg_type_Script__SCRIPT_TYPE, 167);
FACT(v8dbg_class_String__length__int32_t, 12);
FACT(v8dbg_class_SeqOneByteString__chars__char, 16);
FACT(v8dbg_class_SeqTwoByteString__chars__char, 16);
FACT(v8dbg_class_ThinString__actual__String, 16);
FACT(v8dbg_FirstNonstringType, 0x80);
FACT(v8dbg_StringRepresentationMask, 7);
FACT(v8dbg_StringEncodingMask, 8);
FACT(v8dbg_OneByteStringTag, 8);
FACT(v8dbg_ExternalStringTag, 2);
FACT(v8dbg_ThinStringTag, 5);
FACT(v8dbg_SmiValueShift, 1);
FACT(v8dbg_SmiShiftSize, 31);

enum { ONE_BYTE = 8, THIN = 13, SCRIPT = 167, SCOPE = 261, SHARED = 262, CONTEXT = 210 };

static uint64_t maps[512][2], context[8], function[8], shared[16], scope[16], script[16];
static uint64_t name[16], file[16], source[16];

static uint64_t object(uint64_t *words)
{
	return (uint64_t)words | 1;
}

// Every object begins with a map, which has its type.
static void of_type(uint64_t *words, int type)
{
	maps[type][1] = (uint64_t)type << 32;
	words[0] = object(maps[type]);
}

static void text(uint64_t *words, const char *bytes)
{
	of_type(words, ONE_BYTE);
	words[1] = (uint64_t)strlen(bytes) << 32;
	memcpy(words + 2, bytes, strlen(bytes));
}

static void one_function(void)
{
	of_type(context, CONTEXT);
	function[3] = object(shared);
	of_type(shared, SHARED);
	shared[1] = object(scope);
	shared[2] = object(scope);
	shared[4] = object(script);
	of_type(scope, SCOPE);
	scope[1] = (uint64_t)(2 | 1 << 12) << 32;
	scope[4] = object(name);
	scope[6] = 5ULL << 32; // where it starts
	of_type(script, SCRIPT);
	script[1] = object(source);
	script[2] = object(file);
	text(source, "ab\ncd\n");
}

int main(int argc, char **argv)
{
	// Saves context and function as V8's code does, and loops.
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x57, 0x56, 0xeb, 0xfe};
	const char *kind = argc > 1 ? argv[1] : "";
	uint64_t where = object(function);
	char *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*run)(uint64_t, uint64_t);

	if (made == MAP_FAILED)
		return 1;
	one_function();
	text(name, "bad\033[31m\nname;x");
	text(file, "/tmp/\033]0;file\007.js");
	if (!strcmp(kind, "itself")) {
		of_type(function, SHARED);
		function[2] = function[3] = function[4] = where;
		of_type(name, THIN);
		name[2] = object(name);
		scope[4] = object(scope);
		script[1] = script[2] = object(name);
	} else if (!strcmp(kind, "wild")) {
		function[3] = 0xdead0000dead0001ULL;
	} else if (!strcmp(kind, "long")) {
		name[1] = file[1] = source[1] = ~0ULL;
		scope[3] = ~0ULL;
		scope[1] = ~0ULL;
		scope[6] = ~0ULL;
	} else if (strcmp(kind, "escapes")) {
		return 2;
	}
	memcpy(made, code, sizeof(code));
	if (mprotect(made, 4096, PROT_READ | PROT_EXEC))
		return 1;
	memcpy(&run, &made, sizeof(run));
	puts("ready");
	fflush(stdout);
	run(object(context), where);
}
