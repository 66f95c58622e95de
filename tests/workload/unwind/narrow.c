/* A 32-bit program without any library: spins in narrow_spin <- narrow_call <- _start. */

#define FRAME __attribute__((noinline, used))

static long call(long number, long a, const void *b, long c)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory");
	return result;
}

static void say(const char *text)
{
	long size = 0;

	while (text[size])
		size++;
	call(4, 1, text, size);
}

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

/* With --hold and --linger, as all workloads understand them. */
void _start(void)
{
	static char byte;

	say("{\"workload\":\"narrow\",\"ready\":true}\n");
	call(3, 0, &byte, 1);
	narrow_call();
	say("{\"workload\":\"narrow\"}\n");
	call(3, 0, &byte, 1);
	call(1, 0, 0, 0);
}
