/* A 32-bit program without any library: spins in narrow_spin <- narrow_call <- _start. */

#define FRAME __attribute__((noinline, used))

FRAME void narrow_spin(void)
{
	for (volatile unsigned int work = 0; work < 800000000; work = work + 1)
		;
}

FRAME void narrow_call(void)
{
	narrow_spin();
	__asm__ volatile("");
}

void _start(void)
{
	narrow_call();
	__asm__ volatile("int $0x80" : : "a"(1), "b"(0)); /* exit(0) */
}
