/* getppid() without libc (workload/objects.c). */
#include <sys/syscall.h>

static inline __attribute__((always_inline)) void inline_call(void)
{
#if defined(__x86_64__)
	long result = SYS_getppid;

	__asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_getppid;
	register long x0 __asm__("x0");

	__asm__ volatile("svc 0" : "=r"(x0) : "r"(x8) : "memory");
#endif
}
