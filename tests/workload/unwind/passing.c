/* A function that calls back, with a frame size and a name chosen by the build. */

#ifndef PAD
#define PAD 64
#endif
#ifndef SKIP
#define SKIP 16
#endif

/* Each of several libraries has it at another offset. */
#define TEXT(number) TEXT_(number)
#define TEXT_(number) #number
__asm__(".text\n"
	".skip " TEXT(SKIP) ", 0x90\n");

__attribute__((noinline, used)) void NAME(void (*call)(void (*)(void)), void (*end)(void))
{
	char pad[PAD];

	__asm__ volatile("" : : "r"(pad) : "memory");
	call(end);
	__asm__ volatile("" : : "r"(pad) : "memory");
}
