/* empty HOOK...: attaches a BPF program that does nothing to each of them and waits: NAME is tp_btf, GROUP/NAME a
 * classic tracepoint, a number samples per second on each CPU.
 * What that costs is the floor: no tool on the same hooks can cost less. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int load(enum bpf_prog_type type, struct bpf_prog_load_opts *opts)
{
	struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(type, "floor", "GPL", nothing, 2, opts);
}

static int attach_event(int prog, struct perf_event_attr *attr, int cpu)
{
	int event = (int)syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (prog < 0 || event < 0 || ioctl(event, PERF_EVENT_IOC_SET_BPF, prog))
		return -1;
	return ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
}

static int attach_btf(const char *name)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_RAW_TP);
	int id = libbpf_find_vmlinux_btf_id(name, BPF_TRACE_RAW_TP), prog;

	if (id < 0)
		return -1;
	opts.attach_btf_id = id;
	prog = load(BPF_PROG_TYPE_TRACING, &opts);
	return prog < 0 ? -1 : bpf_raw_tracepoint_open(NULL, prog);
}

static int attach_classic(const char *name)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .sample_period = 1 };
	unsigned long long id;
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%llu", &id) != 1)
		return -1;
	fclose(file);
	attr.config = id;
	return attach_event(load(BPF_PROG_TYPE_TRACEPOINT, NULL), &attr, 0);
}

static int attach_samples(unsigned int hz)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK, .freq = 1, .sample_freq = hz };
	int prog = load(BPF_PROG_TYPE_PERF_EVENT, NULL);

	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
		if (attach_event(prog, &attr, cpu) < 0)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		unsigned int hz = (unsigned int)strtoul(argv[i], NULL, 10);

		if ((hz ? attach_samples(hz) : strchr(argv[i], '/') ? attach_classic(argv[i]) : attach_btf(argv[i])) < 0) {
			fprintf(stderr, "cannot attach to %s: %m\n", argv[i]);
			return 1;
		}
	}
	for (;;)
		pause();
}
