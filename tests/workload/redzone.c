/* A leaf function that keeps a value in the red zone over nops of five bytes, one of them a USDT
 * probe. */
#include "workload.h"

WL_NUMBER("hits", hits, 1000, "how often each is passed");

#define NOP5 ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
__asm__(".text\n.globl kept\n.type kept, @function\nkept:\n"
	"mov %rdi, -8(%rsp)\n" NOP5 "990: " NOP5 "mov -8(%rsp), %rax\nret\n.size kept, . - kept\n"
	".pushsection .note.stapsdt, \"\", \"note\"\n.balign 4\n"
	".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"
	"993: .8byte 990b, 0, 0\n.asciz \"redzone\"\n.asciz \"passed\"\n.asciz \"\"\n"
	"994: .balign 4\n.popsection\n");
uint64_t kept(uint64_t value);

static int workload(void)
{
	uint64_t changed = 0;

	wl_ready();
	for (uint64_t i = 0; i < hits; i++)
		changed += kept(i) != i;
	return wl_result("hits %lu changed %lu", hits, changed);
}
