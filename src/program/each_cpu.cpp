#include "program/each_cpu.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "program/section.hpp"
#include "program/session.hpp"

namespace coretap {

namespace {

Result<void> run_on_each_cpu(const bpf_program* program) {
  int fd = program ? bpf_program__fd(program) : -1;
  if (fd < 0) return {};
  for (int cpu : online_cpus()) {
    LIBBPF_OPTS(bpf_test_run_opts, options);
    options.flags = BPF_F_TEST_RUN_ON_CPU;
    options.cpu = static_cast<__u32>(cpu);
    if (bpf_prog_test_run_opts(fd, &options) == 0) continue;
    if (errno == ENXIO) continue;  // the CPU has gone offline meanwhile
    return Error{fmt::format("cannot run {} on CPU {}", bpf_program__name(program), cpu),
                 strerror(errno)};
  }
  return {};
}

}  // namespace

Result<void> run_on_each_cpu(const Session& s, ProgramName program) {
  if (!s.object) return {};
  return run_on_each_cpu(bpf_object__find_program_by_name(s.object.get(), program.c_str()));
}

Result<void> start_on_each_cpu(const Session& s) {
  for (auto* program : programs_of(s.object.get())) {
    auto section = section_of(program);
    if (section.kind != kRun || section.target != kEachCpu) continue;
    if (auto run = run_on_each_cpu(program); !run) return run;
  }
  return {};
}

}  // namespace coretap
