// vfsstat against a process that makes known numbers of calls on files.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// It says its truth, and reads when to begin and to end.
constexpr std::uint64_t kFew = 10;

std::uint64_t operations(const Json& line) {
  std::uint64_t sum = 0;
  for (auto* key : {"reads", "writes", "fsyncs", "opens", "unlinks", "mkdirs", "rmdirs"})
    sum += line[key].u64();
  return sum;
}

TOOL_TEST(Vfsstat, EachOperationOfAProcess) {
  require_tool("vfsstat");
  Workload workload("filecalls", {"--rounds", "50"}, kLinger),
      other("filecalls", {"--rounds", "30"}, kLinger);
  Tracer tracer("vfsstat", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  other.release();
  auto rounds = workload.truth()["rounds"].u64();
  other.truth();
  auto report = tracer.stop();
  EXPECT_GE(report.sum("reads"), 4 * rounds);
  EXPECT_LE(report.sum("reads"), 4 * rounds + kFew);
  EXPECT_GE(report.sum("writes"), 3 * rounds);
  EXPECT_LE(report.sum("writes"), 3 * rounds + kFew);
  EXPECT_EQ(report.sum("fsyncs"), 2 * rounds);
  EXPECT_EQ(report.sum("opens"), 2 * rounds);
  EXPECT_EQ(report.sum("creates"), rounds);
  EXPECT_EQ(report.sum("unlinks"), 2 * rounds);
  EXPECT_EQ(report.sum("mkdirs"), 2 * rounds);
  EXPECT_EQ(report.sum("rmdirs"), 2 * rounds);
}

TOOL_TEST(Vfsstat, TextHasRates) {
  require_tool("vfsstat");
  EXPECT_EQ(header_of("vfsstat", {"0.1", "1"}),
            (Strings{"TIME", "READ/s", "WRITE/s", "FSYNC/s", "OPEN/s", "CREATE/s", "UNLINK/s",
                     "MKDIR/s", "RMDIR/s"}));
  Workload workload("filecalls", {"--rounds", "50"}, kLinger);
  Tracer tracer("vfsstat", {"-p", workload.id(), "3600"});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  auto line = words(text.substr(text.find('\n') + 1));
  ASSERT_EQ(line.size(), 9u) << text;
  // All in one time: rates are as the numbers are to each other.
  EXPECT_NEAR(std::stod(line[4]), 2 * std::stod(line[5]), 2) << text;
  EXPECT_GT(std::stod(line[1]), std::stod(line[3])) << text;
}

const DeclareTests kVfsstat{{
    .name = "vfsstat",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "filecalls --rounds 5"},
    .stress = {.workload = "filecalls --rounds {n}",
               .events = 2000,
               .shown = operations,
               .truth = "operations",
               .slack = kFew},
    .long_run = {{.arguments = "5"}},
}};

}  // namespace
}  // namespace coretap::tooltest
