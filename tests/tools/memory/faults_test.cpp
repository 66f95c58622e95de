// faults against the kernel's counts of a process, and a workload that knows its faults.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// Faults of all threads of a process, by /proc/PID/stat.
struct Faulted {
  explicit Faulted(pid_t pid) {
    auto text = slurp("/proc/" + std::to_string(pid) + "/stat");
    auto fields = words(text.substr(text.rfind(')') + 1));  // from the third on
    minor = std::stoull(fields.at(10 - 3));
    major = std::stoull(fields.at(12 - 3));
  }
  std::uint64_t minor, major;
};

/// A tool's output for a workload, and the kernel's counts meanwhile.
struct OfFaulter {
  Report report;
  Json truth;
  FaultedFiles files;
  std::uint64_t minor, major;
  std::uint64_t all() const { return minor + major; }
};

OfFaulter of_faulter(const std::string& options, const Strings& workload_options) {
  require_tool("faults");
  Workload workload("faulter", workload_options, kLinger);
  FaultedFiles files(workload.ready());
  Faulted before(workload.pid());
  Tracer tracer("faults", options + " --json -p " + workload.id());
  workload.release();
  auto truth = workload.truth();
  if (!until([&] { return state_of(workload.pid()) == 'S'; })) throw std::runtime_error("busy");
  Faulted after(workload.pid());
  return {tracer.stop(), truth, files, after.minor - before.minor, after.major - before.major};
}

const std::string kAllKinds = "--anon 3000 --file 300 --major 60 --kernel 200";

TOOL_TEST(Faults, AsManyAsTheKernelCounts) {
  auto seen = of_faulter("--strict --processes", kAllKinds);
  expect_fields(line_with(seen.report.body, {}),
                {is("comm", "faulter"), is("minor_faults", seen.minor),
                 is("major_faults", seen.major), is("faults", seen.all())});
  EXPECT_GE(seen.minor, 3200u);
  EXPECT_GE(seen.major, 60u);
  EXPECT_GE(seen.all(), 3560u);
}

TOOL_TEST(Faults, StacksOfProgramAndKernel) {
  auto seen = of_faulter("--strict", kAllKinds);
  auto& stacks = seen.report.body;
  EXPECT_EQ(sum(stacks, "count"), seen.all());
  EXPECT_GE(sum_with_frame(stacks, "user_stack", "workload_touch"), 3360u);
  // Only faults of read(2) are in the kernel.
  auto in_kernel = sum_with_frame(stacks, "kernel_stack", "");
  EXPECT_GE(in_kernel, 200u);
  EXPECT_LE(in_kernel, seen.all() - 3360);
  EXPECT_GE(sum_with_frame(stacks, "kernel_stack", "read"), 200u);
}

TOOL_TEST(Faults, OnlyMajorOrMinorOnes) {
  auto major = of_faulter("--major", kAllKinds);
  EXPECT_EQ(major.report.sum("count"), major.major);
  EXPECT_GE(major.major, 60u);
  auto minor = of_faulter("--minor -P", kAllKinds);
  EXPECT_EQ(minor.report.sum("faults"), minor.minor);
  EXPECT_EQ(minor.report.sum("major_faults"), 0u);
}

TOOL_TEST(Faults, ByFile) {
  auto seen = of_faulter("--strict --files", kAllKinds);
  seen.files.expect(seen.report.body, seen.truth);
  auto anonymous = lines_with(seen.report.body, {{"area", "anonymous"}});
  for (auto& row : anonymous) expect_fields(row, {{"file", "[anon]"}, {"inode", 0}});
  auto known = seen.truth["anon"]["minor"].u64() + seen.truth["kernel"]["minor"].u64();
  expect_within(anonymous, {{"faults", known, known + 20}});
  EXPECT_EQ(seen.report.sum("faults"), seen.all());
}

// Other processes' faults use the same counter of each CPU.
TOOL_TEST(Faults, OneOfManyStandsForAll) {
  auto seen = of_faulter("--period 10 -P", "--anon 20000");
  EXPECT_EQ(seen.report.sum("faults") % 10, 0u);
  EXPECT_GT(seen.report.sum("faults"), seen.minor / 2);
  EXPECT_LT(seen.report.sum("faults"), seen.minor * 2);
}

TOOL_TEST(Faults, Text) {
  auto seen = observe_all({"faults -F -p {pid}", "faults -f -p {pid}"}, "faulter --anon 500");
  expect_contains(seen.text(), {"PID     COMM", "FAULTS      MAJOR FILE\n", " [anon]\n"});
  expect_contains(seen.text(1), {"faulter;", ";workload_touch 500\n"});
}

TESTS_OF(faults, .reports = {{ReportKind::stacks}, {ReportKind::aggregate, {"--processes"}}},
         .events = {{}, "faulter --anon 100"},
         .stress = stack_row("faulter --anon {n}", 50000, "faults")
                       .with_slack(100),  // faults of its output
         .long_run = {{.arguments = "-n 100", .holds_results = true},
                      {.arguments = "--files", .holds_results = true}});

}  // namespace
}  // namespace coretap::tooltest
