// faults against what the kernel itself counts of a process, and a workload that knows its faults.
#include <sys/stat.h>

#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// Of all threads of a process, by /proc/PID/stat.
struct Faulted {
  std::uint64_t minor = 0, major = 0;
  static Faulted of(pid_t pid) {
    auto text = slurp("/proc/" + std::to_string(pid) + "/stat");
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    std::string word;
    Faulted f;
    for (int i = 3; fields >> word && i <= 12; i++) {
      if (i == 10) f.minor = std::stoull(word);
      if (i == 12) f.major = std::stoull(word);
    }
    return f;
  }
};

/// What a tool said of a workload, and what the kernel counted meanwhile.
struct Seen {
  Report report;
  Json truth;
  Faulted grown;
};

Seen see(Strings options, const Strings& workload_options) {
  require_tool("faults");
  Workload workload("faulter", workload_options, kLinger);
  auto before = Faulted::of(workload.pid());
  options.insert(options.end(), {"--json", "-p", workload.id()});
  Tracer tracer("faults", options);
  workload.release();
  auto truth = workload.truth();
  if (!until([&] { return state_of(workload.pid()) == 'S'; })) throw std::runtime_error("busy");
  auto after = Faulted::of(workload.pid());
  auto report = tracer.stop();
  workload.end_lingering();
  return {std::move(report), truth, {after.minor - before.minor, after.major - before.major}};
}

std::uint64_t with_frame(const Report& report, const char* stack, std::string_view frame) {
  std::uint64_t sum = 0;
  for (auto& line : report.body)
    for (auto& f : line[stack].strings())
      if (contains(f, frame)) {
        sum += line["count"].u64();
        break;
      }
  return sum;
}

const Strings kAllKinds{"--anon", "3000", "--file", "300", "--major", "60", "--kernel", "200"};

TOOL_TEST(Faults, AsManyAsTheKernelCounts) {
  auto seen = see({"--strict", "--processes"}, kAllKinds);
  ASSERT_EQ(seen.report.body.size(), 1u);
  auto& row = seen.report.body[0];
  EXPECT_EQ(row["comm"].str(), "faulter");
  EXPECT_EQ(row["minor_faults"].u64(), seen.grown.minor);
  EXPECT_EQ(row["major_faults"].u64(), seen.grown.major);
  EXPECT_EQ(row["faults"].u64(), seen.grown.minor + seen.grown.major);
  EXPECT_GE(seen.grown.minor, 3200u);
  EXPECT_GE(seen.grown.major, 60u);
  EXPECT_GE(seen.grown.minor + seen.grown.major, 3560u);
}

TOOL_TEST(Faults, StacksOfProgramAndKernel) {
  auto seen = see({"--strict"}, kAllKinds);
  EXPECT_EQ(seen.report.sum("count"), seen.grown.minor + seen.grown.major);
  EXPECT_GE(with_frame(seen.report, "user_stack", "workload_touch"), 3360u);
  // In the kernel is only what read(2) touched.
  std::uint64_t in_kernel = 0;
  for (auto& line : seen.report.body)
    if (!line["kernel_stack"].strings().empty()) in_kernel += line["count"].u64();
  EXPECT_GE(in_kernel, 200u);
  EXPECT_LE(in_kernel, seen.grown.minor + seen.grown.major - 3360);
  EXPECT_GE(with_frame(seen.report, "kernel_stack", "read"), 200u);
}

TOOL_TEST(Faults, OnlyMajorOrMinorOnes) {
  auto major = see({"--major"}, kAllKinds);
  EXPECT_EQ(major.report.sum("count"), major.grown.major);
  EXPECT_GE(major.grown.major, 60u);
  auto minor = see({"--minor", "-P"}, kAllKinds);
  EXPECT_EQ(minor.report.sum("faults"), minor.grown.minor);
  EXPECT_EQ(minor.report.sum("major_faults"), 0u);
}

TOOL_TEST(Faults, ByFile) {
  require_tool("faults");
  Workload workload("faulter", kAllKinds, kLinger);
  auto cached = workload.ready()["file"].str(), cold = workload.ready()["cold_file"].str();
  struct stat cached_file {
  }, cold_file{};
  ASSERT_EQ(::stat(cached.c_str(), &cached_file), 0);
  ASSERT_EQ(::stat(cold.c_str(), &cold_file), 0);
  auto before = Faulted::of(workload.pid());
  Tracer tracer("faults", {"--json", "--strict", "--files", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  auto after = Faulted::of(workload.pid());
  std::uint64_t anonymous = 0;
  for (auto& row : report.body) {
    auto inode = row["inode"].u64();
    if (inode == cached_file.st_ino) {
      EXPECT_EQ(row["file"].str(), cached);
      EXPECT_EQ(row["minor_faults"].u64(), truth["file"]["minor"].u64());
      EXPECT_EQ(row["major_faults"].u64(), truth["file"]["major"].u64());
    } else if (inode == cold_file.st_ino) {
      EXPECT_EQ(row["file"].str(), cold);
      EXPECT_EQ(row["minor_faults"].u64(), truth["cold"]["minor"].u64());
      EXPECT_EQ(row["major_faults"].u64(), truth["cold"]["major"].u64());
    } else if (row["area"].str() == "anonymous") {
      EXPECT_EQ(row["file"].str(), "[anon]");
      EXPECT_EQ(inode, 0u);
      anonymous += row["faults"].u64();
    }
  }
  auto known = truth["anon"]["minor"].u64() + truth["kernel"]["minor"].u64();
  EXPECT_GE(anonymous, known);
  EXPECT_LE(anonymous, known + 20);
  EXPECT_EQ(report.sum("faults"), after.minor + after.major - before.minor - before.major);
  workload.end_lingering();
}

// Other processes' faults are counted by the same counter of each CPU.
TOOL_TEST(Faults, OneOfManyStandsForAll) {
  auto seen = see({"--period", "10", "-P"}, {"--anon", "20000"});
  EXPECT_EQ(seen.report.sum("faults") % 10, 0u);
  EXPECT_GT(seen.report.sum("faults"), seen.grown.minor / 2);
  EXPECT_LT(seen.report.sum("faults"), seen.grown.minor * 2);
}

TOOL_TEST(Faults, TextAndCommandLines) {
  require_tool("faults");
  Workload workload("faulter", {"--anon", "500"}, kLinger);
  Tracer rows("faults", {"-F", "-p", workload.id()});
  Tracer folded("faults", {"-f", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto text = rows.stop_text(), lines = folded.stop_text();
  EXPECT_TRUE(contains(text, "PID     COMM")) << text;
  EXPECT_TRUE(contains(text, "FAULTS      MAJOR FILE\n")) << text;
  EXPECT_TRUE(contains(text, " [anon]\n")) << text;
  EXPECT_TRUE(contains(lines, "faulter;")) << lines;
  EXPECT_TRUE(contains(lines, ";workload_touch 500\n")) << lines;
  for (auto& bad : std::vector<Strings>{
           {"-M", "--minor"}, {"-P", "-F"}, {"-P", "-f"}, {"--top", "3"}, {"-n", "0"}}) {
    auto argv = bad;
    argv.insert(argv.begin(), tool_path("faults"));
    EXPECT_EQ(run(argv).status, 2) << join(bad);
  }
}

const DeclareTests kFaults{{
    .name = "faults",
    .reports = {{ReportKind::stacks}, {ReportKind::aggregate, {"--processes"}}},
    .events = {{}, "faulter --anon 100"},
    .stress = {.workload = "faulter --anon {n}",
               .events = 50000,
               .shown = "count",
               .truth = "faults",
               .tiny = "--stack-storage-size 1",
               .slack = 100},  // what its output needs
    .long_run = {{.arguments = "-n 100", .holds_results = true},
                 {.arguments = "--files", .holds_results = true}},
}};

}  // namespace
}  // namespace coretap::tooltest
