/* A library that makes system calls without libc (workload/objects.c). */
#include <stdint.h>
#include <sys/syscall.h>

void inline_calls(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
#if defined(__x86_64__)
		long result = SYS_getppid;

		__asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
#elif defined(__aarch64__)
		register long x8 __asm__("x8") = SYS_getppid;
		register long x0 __asm__("x0");

		__asm__ volatile("svc 0" : "=r"(x0) : "r"(x8) : "memory");
#endif
	}
}
