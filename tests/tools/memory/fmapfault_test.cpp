// fmapfault against a workload that knows how often it faults on which file.
#include <sys/stat.h>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Fmapfault, OnlyMappedFiles) {
  require_tool("fmapfault");
  Workload workload("faulter", {"--anon", "1000", "--file", "300", "--major", "60"}, kLinger);
  auto cached = workload.ready()["file"].str(), cold = workload.ready()["cold_file"].str();
  struct stat file {};
  ASSERT_EQ(::stat(cached.c_str(), &file), 0);
  Tracer all("fmapfault", {"--json", "--strict", "-p", workload.id()});
  Tracer writes("fmapfault", {"--json", "--strict", "-w", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = all.stop(), stores = writes.stop();
  workload.end_lingering();
  std::size_t known = 0;
  for (auto& row : report.body) {
    EXPECT_EQ(row["pid"].i64(), workload.pid());
    EXPECT_EQ(row["comm"].str(), "faulter");
    EXPECT_EQ(row["area"].str(), "file");
    auto path = row["file"].str();
    if (path != cached && path != cold) continue;
    known++;
    auto of = truth[path == cached ? "file" : "cold"];
    EXPECT_EQ(row["minor_faults"].u64(), of["minor"].u64());
    EXPECT_EQ(row["major_faults"].u64(), of["major"].u64());
    if (path == cached) {
      EXPECT_EQ(row["inode"].u64(), file.st_ino);
    }
  }
  EXPECT_EQ(known, 2u);
  // Only the one file was written; the thousand anonymous pages are nowhere.
  auto of_file = truth["file"]["minor"].u64() + truth["file"]["major"].u64();
  EXPECT_GE(stores.sum("faults"), of_file);
  EXPECT_LE(stores.sum("faults"), of_file + 100);
  EXPECT_LE(report.sum("faults"),
            of_file + truth["cold"]["minor"].u64() + truth["cold"]["major"].u64() + 100);
}

TOOL_TEST(Fmapfault, Columns) {
  require_tool("fmapfault");
  Workload workload("faulter", {"--file", "100"}, kLinger);
  Tracer tracer("fmapfault", {"-r", "1", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto rows = lines(tracer.stop_text());
  auto path = workload.ready()["file"].str();
  workload.end_lingering();
  ASSERT_GE(rows.size(), 3u);
  EXPECT_EQ(words(rows[1]), (Strings{"PID", "COMM", "FAULTS", "MAJOR", "FILE"}));
  EXPECT_EQ(words(rows[2]).back(), path) << rows[2];
}

const DeclareTests kFmapfault{{
    .name = "fmapfault",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "faulter --file 100"},
    .stress = {.workload = "faulter --file {n}",
               .events = 20000,
               .shown = "faults",
               .truth =
                   [](stress::Load& load) {
                     auto file = load.workload().truth()["file"];
                     return file["minor"].u64() + file["major"].u64();
                   },
               .tiny = "--max-keys 1",
               .slack = 100},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
