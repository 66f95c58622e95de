/* empty HOOK...: attaches a BPF program that does nothing to each of them and waits: NAME or tp_btf/NAME is a tracepoint
 * by its BTF type, raw_tp/NAME a raw one, fentry/NAME, fexit/NAME, kprobe/NAME, kretprobe/NAME, kprobe.multi/NAME and
 * kretprobe.multi/NAME are a function's, uprobe/FILE+OFFSET and uretprobe/FILE+OFFSET a user function's, any other
 * GROUP/NAME is a classic tracepoint, a number samples per second on each CPU.
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

static int attach_btf(const char *name, enum bpf_attach_type type)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type);
	int id = libbpf_find_vmlinux_btf_id(name, type), prog;

	if (id < 0)
		return -1;
	opts.attach_btf_id = id;
	prog = load(BPF_PROG_TYPE_TRACING, &opts);
	return prog < 0 ? -1 : bpf_raw_tracepoint_open(NULL, prog);
}

static long long number_in(const char *path)
{
	FILE *file = fopen(path, "r");
	long long number;

	if (!file || fscanf(file, "%lld", &number) != 1)
		number = -1;
	if (file)
		fclose(file);
	return number;
}

static int attach_classic(const char *name)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .sample_period = 1 };
	long long id;
	char path[256];

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	id = number_in(path);
	if (id < 0)
		return -1;
	attr.config = id;
	return attach_event(load(BPF_PROG_TYPE_TRACEPOINT, NULL), &attr, 0);
}

static int attach_kprobe(const char *function, int at_return)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .config = at_return, .kprobe_func = (unsigned long)function };
	long long type = number_in("/sys/bus/event_source/devices/kprobe/type");

	if (type < 0)
		return -1;
	attr.type = type;
	return attach_event(load(BPF_PROG_TYPE_KPROBE, NULL), &attr, 0);
}

/* Links that older headers do not have. */
enum { KPROBE_MULTI = 42, UPROBE_MULTI = 48 };

static int create_link(void *attr, size_t size)
{
	return (int)syscall(SYS_bpf, BPF_LINK_CREATE, attr, size);
}

static int load_multi(enum bpf_attach_type type)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type);

	return load(BPF_PROG_TYPE_KPROBE, &opts);
}

/* Lines of a file, which stay. */
static const char **lines_of(const char *path, __u32 *count)
{
	FILE *file = fopen(path, "r");
	const char **lines = NULL;
	char *line = NULL;
	size_t room = 0;

	for (*count = 0; file && getline(&line, &room, file) > 0; (*count)++) {
		if (!(*count & (*count + 1)))
			lines = realloc(lines, sizeof(*lines) * 2 * (*count + 1));
		lines[*count] = strndup(line, strcspn(line, "\n"));
	}
	return lines;
}

/* A function, or @FILE: all that it names, a line each. */
static int attach_kprobe_multi(const char *function, int at_return)
{
	struct {
		__u32 prog, target, type, link_flags, flags, count;
		__u64 symbols, addresses, cookies;
	} attr = { .type = KPROBE_MULTI, .flags = at_return, .count = 1, .symbols = (unsigned long)&function };

	attr.prog = load_multi(attr.type);
	if (*function == '@')
		attr.symbols = (unsigned long)lines_of(function + 1, &attr.count);
	return create_link(&attr, sizeof(attr));
}

/* FILE+OFFSET; by the link of many places where the kernel has it. */
static int attach_uprobe(const char *place, int at_return)
{
	const char *plus = strrchr(place, '+');
	__u64 offset = plus ? strtoull(plus, NULL, 0) : 0;
	char *path = strndup(place, plus ? (size_t)(plus - place) : 0);
	struct {
		__u32 prog, target, type, link_flags;
		__u64 path, offsets, counters, cookies;
		__u32 count, flags, pid, unused;
	} attr = { .type = UPROBE_MULTI, .path = (unsigned long)path, .offsets = (unsigned long)&offset,
		   .count = 1, .flags = at_return };
	struct perf_event_attr event = { .size = sizeof(event), .config = at_return,
					 .uprobe_path = (unsigned long)path, .probe_offset = offset };
	long long type = number_in("/sys/bus/event_source/devices/uprobe/type");

	attr.prog = load_multi(attr.type);
	if ((int)attr.prog >= 0 && create_link(&attr, sizeof(attr)) >= 0)
		return 0;
	if (type < 0)
		return -1;
	event.type = type;
	return attach_event(load(BPF_PROG_TYPE_KPROBE, NULL), &event, 0);
}

static int attach_raw(const char *name)
{
	int prog = load(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL);

	return prog < 0 ? -1 : bpf_raw_tracepoint_open(name, prog);
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

static int is(const char *hook, const char *kind)
{
	return !strncmp(hook, kind, strlen(kind));
}

static int attach(const char *hook)
{
	unsigned int hz = (unsigned int)strtoul(hook, NULL, 10);
	const char *slash = strchr(hook, '/'), *name = slash ? slash + 1 : hook;

	if (hz)
		return attach_samples(hz);
	if (!slash || is(hook, "tp_btf/"))
		return attach_btf(name, BPF_TRACE_RAW_TP);
	if (is(hook, "fentry/") || is(hook, "fexit/"))
		return attach_btf(name, is(hook, "fexit/") ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY);
	if (is(hook, "raw_tp/"))
		return attach_raw(name);
	if (is(hook, "kprobe.multi/") || is(hook, "kretprobe.multi/"))
		return attach_kprobe_multi(name, is(hook, "kretprobe.multi/"));
	if (is(hook, "uprobe/") || is(hook, "uretprobe/"))
		return attach_uprobe(name, is(hook, "uretprobe/"));
	if (is(hook, "kprobe/") || is(hook, "kretprobe/"))
		return attach_kprobe(name, is(hook, "kretprobe/"));
	return attach_classic(hook);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (attach(argv[i]) < 0) {
			fprintf(stderr, "cannot attach to %s: %m\n", argv[i]);
			return 1;
		}
	}
	for (;;)
		pause();
}
