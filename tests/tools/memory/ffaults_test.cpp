// ffaults against a workload that knows how often it faults on which file.
#include <sys/stat.h>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

const Strings kAllKinds{"--anon", "1000", "--file", "300", "--major", "60"};

std::uint64_t inode_of(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file)) throw std::runtime_error(path);
  return file.st_ino;
}

struct Sums {
  std::uint64_t minor = 0, major = 0;
};
Sums of_inode(const Report& report, std::uint64_t inode, const std::string& path) {
  Sums sums;
  for (auto& row : report.body) {
    if (row["inode"].u64() != inode) continue;
    EXPECT_EQ(row["file"].str(), path);
    EXPECT_EQ(row["area"].str(), "file");
    sums.minor += row["minor_faults"].u64();
    sums.major += row["major_faults"].u64();
  }
  return sums;
}

TOOL_TEST(Ffaults, EachFileByItsInode) {
  require_tool("ffaults");
  Workload workload("faulter", kAllKinds, kLinger);
  auto cached = workload.ready()["file"].str(), cold = workload.ready()["cold_file"].str();
  auto cached_inode = inode_of(cached), cold_inode = inode_of(cold);
  Tracer all("ffaults", {"--json", "--strict", "-p", workload.id()});
  Tracer writes("ffaults", {"--json", "-w", "-p", workload.id()});
  Tracer often("ffaults", {"--json", "--strict", "-p", workload.id(), "0.05"});
  workload.release();
  auto truth = workload.truth();
  auto report = all.stop(), stores = writes.stop(), parts = often.stop();

  for (auto* r : {&report, &parts}) {
    auto of_cached = of_inode(*r, cached_inode, cached), of_cold = of_inode(*r, cold_inode, cold);
    EXPECT_EQ(of_cached.minor, truth["file"]["minor"].u64());
    EXPECT_EQ(of_cached.major, truth["file"]["major"].u64());
    EXPECT_EQ(of_cold.minor, truth["cold"]["minor"].u64());
    EXPECT_EQ(of_cold.major, truth["cold"]["major"].u64());
    EXPECT_GE(r->sum("faults"), truth["faults"].u64());
    EXPECT_LE(r->sum("faults"), truth["faults"].u64() + 100);
  }
  // Of those the one file was written, the other one read.
  auto written = of_inode(stores, cached_inode, cached);
  EXPECT_EQ(written.minor + written.major,
            truth["file"]["minor"].u64() + truth["file"]["major"].u64());
  EXPECT_EQ(of_inode(stores, cold_inode, cold).major, 0u);
  EXPECT_GE(stores.lost("filtered"), 60u);
  workload.end_lingering();
}

TOOL_TEST(Ffaults, ProcessesAndColumns) {
  require_tool("ffaults");
  Workload workload("faulter", {"--anon", "1000", "--major", "60"}, kLinger);
  auto cold = workload.ready()["cold_file"].str();
  Tracer tracer("ffaults", {"-P", "-s", "major_faults", "-r", "1", "-p", workload.id()});
  Tracer plain("ffaults", {"--json", "-p", workload.id()});
  workload.release();
  auto major = workload.truth()["cold"]["major"].u64();
  auto rows = lines(tracer.stop_text());
  auto report = plain.stop();
  ASSERT_GE(rows.size(), 3u);
  EXPECT_EQ(words(rows[1]), (Strings{"PID", "COMM", "FAULTS", "MAJOR", "FILE"}));
  auto cells = words(rows[2]);
  ASSERT_EQ(cells.size(), 5u) << rows[2];
  EXPECT_EQ(cells[0], workload.id());
  EXPECT_EQ(cells[1], "faulter");
  EXPECT_EQ(cells[3], std::to_string(major));
  EXPECT_EQ(cells[4], cold);
  for (auto& row : report.body) EXPECT_FALSE(row.has("pid"));
  workload.end_lingering();
}

const DeclareTests kFfaults{{
    .name = "ffaults",
    .reports = {{ReportKind::aggregate}},
    .events = {"-P", "faulter --anon 100"},
    .stress = {.workload = "faulter --anon {n}",
               .events = 50000,
               .shown = "faults",
               .truth = "faults",
               .tiny = "--max-keys 1",
               .slack = 100},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
