// bufgrow against a process that writes a known number of pages of a device of its own.
#include <unistd.h>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

// All pages that it writes are new, and all are dropped at the end.
TOOL_TEST(Bufgrow, PagesOfADevice) {
  require_tool("bufgrow");
  Workload workload("blockio", {"--make", "loop", "--buffered", "--count", "50", "--size", "64k"},
                    kLinger);
  auto disk = workload.ready()["disk"].str();
  Tracer tracer("bufgrow", {"--json", "--strict", "-D", "-p", workload.id(), "-d", disk});
  Tracer plain("bufgrow", {"--json", "--strict", "-p", workload.id()});
  Tracer another("bufgrow", {"--json", "-p", std::to_string(::getpid())});
  workload.release();
  auto bytes = workload.truth()["bytes"].u64();
  auto report = tracer.stop(), all = plain.stop(), others = another.stop();
  workload.end_lingering();

  ASSERT_EQ(report.body.size(), 1u);
  auto& row = report.body[0];
  EXPECT_EQ(row["comm"].str(), "blockio");
  EXPECT_EQ(row["pid"].i64(), workload.pid());
  EXPECT_EQ(row["disk"].str(), disk);
  EXPECT_EQ(row["added_bytes"].u64(), bytes);
  EXPECT_EQ(row["removed_bytes"].u64(), bytes);
  ASSERT_EQ(all.body.size(), 1u);
  EXPECT_FALSE(all.body[0].has("disk"));
  EXPECT_GE(all.body[0]["added_bytes"].u64(), bytes) << "and a file system's metadata";
  EXPECT_GE(others.lost("filtered"), 50u);
}

TOOL_TEST(Bufgrow, Columns) {
  require_tool("bufgrow");
  Workload workload("blockio", {"--make", "loop", "--buffered", "--count", "8"}, kLinger);
  Tracer tracer("bufgrow", {"-D", "-p", workload.id(), "-d", workload.ready()["disk"].str()});
  workload.release();
  workload.truth();
  auto rows = lines(tracer.stop_text());
  ASSERT_GE(rows.size(), 3u);
  EXPECT_EQ(words(rows[1]), (Strings{"PID", "COMM", "DISK", "KB", "FREED_KB"}));
  EXPECT_EQ(words(rows[2]),
            (Strings{workload.id(), "blockio", workload.ready()["disk"].str(), "32", "32"}));
}

const DeclareTests kBufgrow{{
    .name = "bufgrow",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "blockio --make loop --buffered --count 20"},
    .stress = {.workload = "blockio --make loop --buffered --count {n}",
               .events = 5000,
               .options = "-D",
               .shown =
                   [](const Json& line) {
                     auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
                     if (!line["disk"].str().starts_with("loop")) return std::uint64_t{0};
                     return (line["added_bytes"].u64() + line["removed_bytes"].u64()) / page;
                   },
               .truth = [](stress::Load& load) { return 2 * load.truth("count"); },
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
