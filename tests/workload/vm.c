/* A virtual machine whose processor leaves the guest a known number of times. */
#include "workload.h"

#include <linux/kvm.h>
#include <linux/perf_event.h>

static uint64_t cpuids = 100, outs = 50;

#if defined(__x86_64__)
#define GUEST_AT 0x1000

/* Asks for CPUID N times, writes to a port N times, then halts. */
static const unsigned char program[] = {
	0xbe, 0,    0,				  /* mov si, cpuids */
	0x31, 0xc0, 0x0f, 0xa2, 0x4e, 0x75, 0xf9, /* xor ax, ax; cpuid; dec si; jnz */
	0xbe, 0,    0,				  /* mov si, outs */
	0xe6, 0x10, 0x4e, 0x75, 0xfb,		  /* out 0x10, al; dec si; jnz */
	0xf4,					  /* hlt */
};

/* Counts a tracepoint of this thread, as perf does; -1: there is none of that name. */
static int count_event(const char *id_file)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr)};
	char text[32];

	if (wl_slurp(id_file, text, sizeof(text)) <= 0)
		return -1;
	attr.config = strtoull(text, NULL, 10);
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static uint64_t counted(int event)
{
	uint64_t n = 0;

	if (event < 0 || read(event, &n, sizeof(n)) != sizeof(n))
		return 0;
	return n;
}

static int made(int fd, const char *what)
{
	if (fd < 0)
		wl_die(WL_CANNOT, "%s: %m", what);
	return fd;
}

int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {
		{"cpuids", WL_NUM, &cpuids, "N", "exits for CPUID, at most 65535"},
		{"outs", WL_NUM, &outs, "N", "exits for writes to a port, at most 65535"},
		{0},
	};
	struct kvm_userspace_memory_region region = {.guest_phys_addr = GUEST_AT,
						     .memory_size = 4096};
	struct kvm_regs regs = {.rip = GUEST_AT, .rflags = 2};
	uint64_t io = 0, halts = 0, exits;
	struct kvm_sregs sregs;
	struct kvm_run *run;
	unsigned char *memory;
	int kvm, machine, cpu, size, event;

	wl_start(argc, argv, "vm", "Leaves a guest a known number of times.", opts);
	if (cpuids < 1 || cpuids > 65535 || outs < 1 || outs > 65535)
		wl_die(WL_USAGE, "want 1 to 65535 exits of each kind");
	kvm = made(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
	machine = made(ioctl(kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM");
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		wl_die(WL_FAILED, "mmap: %m");
	memcpy(memory, program, sizeof(program));
	memory[1] = (unsigned char)cpuids;
	memory[2] = (unsigned char)(cpuids >> 8);
	memory[11] = (unsigned char)outs;
	memory[12] = (unsigned char)(outs >> 8);
	region.userspace_addr = (uint64_t)(uintptr_t)memory;
	made(ioctl(machine, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
	cpu = made(ioctl(machine, KVM_CREATE_VCPU, 0), "KVM_CREATE_VCPU");
	size = made(ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), "KVM_GET_VCPU_MMAP_SIZE");
	run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0);
	if (run == MAP_FAILED)
		wl_die(WL_FAILED, "mmap: %m");
	made(ioctl(cpu, KVM_GET_SREGS, &sregs), "KVM_GET_SREGS");
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	made(ioctl(cpu, KVM_SET_SREGS, &sregs), "KVM_SET_SREGS");
	made(ioctl(cpu, KVM_SET_REGS, &regs), "KVM_SET_REGS");

	event = count_event("/sys/kernel/tracing/events/kvm/kvm_exit/id");
	wl_ready();
	exits = counted(event);
	while (!halts) {
		if (ioctl(cpu, KVM_RUN, 0) < 0) {
			if (errno == EINTR)
				continue;
			wl_die(WL_CANNOT, "KVM_RUN: %m");
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
	if (!exits)
		wl_die(WL_CANNOT, "this kernel's KVM does not trace its exits");
	wl_line_begin();
	wl_u64("cpuids", cpuids);
	wl_u64("outs", io);
	wl_u64("halts", halts);
	wl_u64("exits", exits);
	wl_finish();
	return WL_OK;
}
#else
int main(int argc, char **argv)
{
	const struct wl_opt opts[] = {{0}};

	wl_start(argc, argv, "vm", "Leaves a guest a known number of times.", opts);
	(void)cpuids;
	(void)outs;
	wl_die(WL_CANNOT, "made for x86 only");
}
#endif
