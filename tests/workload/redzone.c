/* Leaf functions that keep values in the red zone across one instruction each, also across a USDT
 * probe; and one that exchanges registers. */
#include "workload.h"

WL_NUMBER("hits", hits, 1000, "how often each is passed");

/* -> 1: a value has changed. The instruction is at 0xf; `same` is in %r8. */
#define KEPT(name, instruction)                                                                    \
	int kept_##name(uint64_t value, int, int, int, uint64_t same);                             \
	__asm__(".text\n.globl kept_" #name "\n.type kept_" #name ", @function\nkept_" #name ":\n" \
		"mov %rdi, -8(%rsp)\nmov %rdi, -64(%rsp)\nmov %rdi, -128(%rsp)\n" instruction      \
		"\n2: xor %eax, %eax\ncmp %rdi, -8(%rsp)\njne 3f\ncmp %rdi, -64(%rsp)\njne 3f\n"   \
		"cmp %rdi, -128(%rsp)\nje 4f\n3: mov $1, %eax\n4: ret\n"                           \
		".size kept_" #name ", . - kept_" #name "\n")
#define NOP5 ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00"

KEPT(nop, "nop");
KEPT(nop2, ".byte 0x66, 0x90");
KEPT(nop5, NOP5);
KEPT(nop10, ".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0");
KEPT(jmp, ".byte 0xe9, 0, 0, 0, 0");
KEPT(jcc, "je 2f");
KEPT(test, "test %rdi, %rdi");
KEPT(load, "mov -8(%rsp), %rax");
KEPT(store, "mov %rdi, -8(%rsp)");
KEPT(xchg, ".byte 0x49, 0x90\ncmp %rdi, %rax\njne 3f"); /* %rax, %r8 */
KEPT(usdt, "990: " NOP5);
__asm__(".pushsection .note.stapsdt, \"\", \"note\"\n.balign 4\n"
	".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"
	"993: .8byte 990b, 0, 0\n.asciz \"redzone\"\n.asciz \"passed\"\n.asciz \"\"\n"
	"994: .balign 4\n.popsection\n");

/* Return the second argument. A loop leads to behind the first instruction; code before a push. */
#define FUNCTION(name, code)                                                                       \
	uint64_t name(uint64_t first, uint64_t second);                                            \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ": endbr64\n" code   \
		"\nret\n.size " #name ", . - " #name "\n")
FUNCTION(looped, "1: test %rdi, %rdi\nje 2f\ndec %rdi\njmp 1b\n2: mov %rsi, %rax");
FUNCTION(pushed, "mov (%rsp), %rax\nxor %r10d, %r10d\nmov %rsi, %rax\npush %rbx\nmov %rdi, %rbx\n"
		 "xor %edi, %edi\nxor %esi, %esi\npop %rbx");
FUNCTION(cleared, "mov %rsi, %rax\nxor %esi, %esi\npush %rbx\nxor %edi, %edi\npop %rbx");
FUNCTION(lowered,
	 "mov %rsi, -8(%rsp)\nsub $8, %rsp\nmov (%rsp), %rax\npush %rbx\npop %rbx\nadd $8, %rsp");
/* Others enter them behind the first instruction: by a jump, and by a symbol. */
FUNCTION(led, ".Lled: mov %rsi, %rax\npush %rbx\npop %rbx");
FUNCTION(leads, "jmp .Lled");
FUNCTION(shared, ".globl within\nwithin: mov %rsi, %rax\npush %rbx\npop %rbx");
uint64_t within(uint64_t first, uint64_t second);

#define PASSED(name) kept_##name(i, 0, 0, 0, i)

static int workload(void)
{
	uint64_t changed = 0;

	wl_ready();
	for (uint64_t i = 0; i < hits; i++)
		changed += PASSED(nop) + PASSED(nop2) + PASSED(nop5) + PASSED(nop10) + PASSED(jmp) +
			   PASSED(jcc) + PASSED(test) + PASSED(load) + PASSED(store) +
			   PASSED(xchg) + PASSED(usdt) + (looped(3, i) != i) +
			   (pushed(i, 2 * i) != 2 * i) + (cleared(i, 2 * i) != 2 * i) +
			   (lowered(i, 2 * i) != 2 * i) + (led(0, i) != i) + (leads(0, i) != i) +
			   (shared(0, i) != i) + (within(0, i) != i);
	return wl_result("hits %lu changed %lu", hits, changed);
}
