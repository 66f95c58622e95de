/* A library that makes system calls without libc (workload/objects.c). */
#include <stdint.h>

#include "inline_call.h"

void inline_calls(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		inline_call();
}
