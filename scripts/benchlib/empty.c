/* empty TRACEPOINT...: attaches a BPF program that does nothing to each of them and waits.
 * What that costs is the floor: no tool on the same hooks can cost less. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	for (int i = 1; i < argc; i++) {
		LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_RAW_TP);
		int id = libbpf_find_vmlinux_btf_id(argv[i], BPF_TRACE_RAW_TP), prog;

		if (id < 0) {
			fprintf(stderr, "no tracepoint %s\n", argv[i]);
			return 1;
		}
		opts.attach_btf_id = id;
		prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, "floor", "GPL", nothing, 2, &opts);
		if (prog < 0 || bpf_raw_tracepoint_open(NULL, prog) < 0) {
			perror(argv[i]);
			return 1;
		}
	}
	for (;;)
		pause();
}
