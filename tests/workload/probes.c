/* Calls its functions and passes its USDT probes a known number of times. */
#include "workload.h"

WL_NUMBER("calls", calls, 100, "times that all is done");
static volatile uint64_t sink;

/* A note as in <sys/sdt.h>, which need not be installed. */
#define PROBE(name, semaphore, argument)                                                           \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"                              \
			 ".balign 4\n"                                                             \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                        \
			 "991: .asciz \"stapsdt\"\n"                                               \
			 "992: .balign 4\n"                                                        \
			 "993: .8byte 990b\n"                                                      \
			 ".8byte 0\n"                                                              \
			 ".8byte " semaphore "\n"                                                  \
			 ".asciz \"coretap_test\"\n"                                               \
			 ".asciz \"" name "\"\n"                                                   \
			 ".asciz \"8@%0\"\n"                                                       \
			 "994: .balign 4\n"                                                        \
			 ".popsection\n" ::"r"(argument))

__attribute__((section(".probes"), used)) unsigned short probes_gate;
static uint64_t gated;

WL_FRAME void counted_each(uint64_t i)
{
	sink += i;
}

WL_FRAME void counted_even(uint64_t i)
{
	sink += i * 2;
}

WL_FRAME void counted_never(uint64_t i)
{
	sink += i * 3;
}

static void pass(uint64_t i)
{
	counted_each(i);
	if (i % 2 == 0)
		counted_even(i);
	PROBE("plain", "0", i);
	/* As in programs that check for a tracer before they compute arguments. */
	if (__atomic_load_n(&probes_gate, __ATOMIC_RELAXED)) {
		gated++;
		PROBE("gated", "probes_gate", i);
	}
}

static int workload(void)
{
	wl_ready();
	for (uint64_t i = 0; i < calls; i++) {
		pass(i);
		syscall(SYS_getppid);
	}
	if (calls == UINT64_MAX)
		counted_never(0);
	return wl_result("calls %lu even %lu gated %lu", calls, (calls + 1) / 2, gated);
}
