/* A virtual machine that exits a known number of times. */
#include "perf.h"

#include <linux/kvm.h>

WL_BOUNDED("cpuids", cpuids, 100, 1, 65535, "exits for CPUID, at most 65535");
WL_BOUNDED("outs", outs, 50, 1, 65535, "exits for writes to a port, at most 65535");

#if defined(__x86_64__)
#define GUEST_AT 0x1000

/* Executes CPUID N times, writes to a port N times, then halts. */
static const unsigned char program[] = {
	0xbe, 0,    0,				  /* mov si, cpuids */
	0x31, 0xc0, 0x0f, 0xa2, 0x4e, 0x75, 0xf9, /* xor ax, ax; cpuid; dec si; jnz */
	0xbe, 0,    0,				  /* mov si, outs */
	0xe6, 0x10, 0x4e, 0x75, 0xfb,		  /* out 0x10, al; dec si; jnz */
	0xf4,					  /* hlt */
};

static int workload(void)
{
	struct kvm_userspace_memory_region region = {.guest_phys_addr = GUEST_AT,
						     .memory_size = 4096};
	struct kvm_regs regs = {.rip = GUEST_AT, .rflags = 2};
	uint64_t io = 0, halts = 0;
	struct kvm_sregs sregs;

	int kvm = can(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
	int machine = can(ioctl(kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM");
	unsigned char *memory = wl_shared(4096);
	memcpy(memory, program, sizeof(program));
	memory[1] = (unsigned char)cpuids;
	memory[2] = (unsigned char)(cpuids >> 8);
	memory[11] = (unsigned char)outs;
	memory[12] = (unsigned char)(outs >> 8);
	region.userspace_addr = (uint64_t)(uintptr_t)memory;
	can(ioctl(machine, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
	int cpu = can(ioctl(machine, KVM_CREATE_VCPU, 0), "KVM_CREATE_VCPU");
	int size = can(ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), "KVM_GET_VCPU_MMAP_SIZE");
	struct kvm_run *run = wl_map((size_t)size, MAP_SHARED, cpu);
	can(ioctl(cpu, KVM_GET_SREGS, &sregs), "KVM_GET_SREGS");
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	can(ioctl(cpu, KVM_SET_SREGS, &sregs), "KVM_SET_SREGS");
	can(ioctl(cpu, KVM_SET_REGS, &regs), "KVM_SET_REGS");

	int event = count_event("/sys/kernel/tracing/events/kvm/kvm_exit/id");
	wl_ready();
	uint64_t exits = counted(event);
	while (!halts) {
		if (ioctl(cpu, KVM_RUN, 0) < 0) {
			cannot_if(errno != EINTR, "KVM_RUN");
			continue;
		}
		if (run->exit_reason == KVM_EXIT_IO)
			io++;
		else if (run->exit_reason == KVM_EXIT_HLT)
			halts++;
		else
			wl_die(WL_CANNOT, "the guest does not run here (exit %u)",
			       run->exit_reason);
	}
	exits = counted(event) - exits;
	lacks_if(!exits, "this kernel's KVM does not trace its exits");
	return wl_result("cpuids %lu outs %lu halts %lu exits %lu", cpuids, io, halts, exits);
}
#else
static int workload(void)
{
	wl_die(WL_CANNOT, "made for x86 only");
}
#endif
