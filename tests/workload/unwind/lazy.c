/* A library that calls its own functions through its procedure linkage table. */

#define FRAME __attribute__((noinline, used))

FRAME void plt_nothing(void)
{
	__asm__ volatile("");
}

FRAME void plt_calls(int count)
{
	for (int i = 0; i < count; i++)
		plt_nothing();
}
