// mmapfiles against a program that maps a file a known number of times, and /proc/PID/maps.
#include <set>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Mmapfiles, EachFileAsOftenAsItIsMapped) {
  require_tool("mmapfiles");
  Workload workload("segments", {"--maps", "20"}, kLinger);
  Tracer own("mmapfiles", {"--json", "--strict", "-P", "-p", workload.id()});
  Tracer nobody("mmapfiles", {"--json", "--strict", "-u", "54321"});
  workload.release();
  auto truth = workload.truth();
  auto report = own.stop(), none = nobody.stop();
  auto rounds = truth["rounds"].u64(), page = truth["page"].u64();
  EXPECT_TRUE(none.body.empty());
  EXPECT_GE(none.lost("filtered"), 4 * rounds);

  // In each round: a page to be executed, two shared and writable, one over them; and a directory,
  // which cannot be mapped.
  std::size_t known = 0;
  for (auto& row : report.body) {
    EXPECT_EQ(row["pid"].i64(), workload.pid());
    EXPECT_EQ(row["comm"].str(), "segments");
    bool file = row["file"].str() == truth["path"].str(), directory = row["file"].str() == "/";
    if (!file && !directory) continue;
    known++;
    EXPECT_EQ(row["maps"].u64(), (file ? 3 : 1) * rounds);
    EXPECT_EQ(row["executable_maps"].u64(), file ? rounds : 0);
    EXPECT_EQ(row["writing_maps"].u64(), file ? rounds : 0);
    EXPECT_EQ(row["mapped_bytes"].u64(), (file ? 4 : 1) * rounds * page);
  }
  EXPECT_EQ(known, 2u);
  EXPECT_EQ(report.sum("maps"), truth["file_maps"].u64());
}

// All files that a program has when it runs; the program and its loader are mapped by the kernel.
TOOL_TEST(Mmapfiles, FilesOfACommand) {
  require_tool("mmapfiles");
  Tracer tracer("mmapfiles", {"--json", "--", "cat", "/proc/self/maps"}, {.attached = false});
  ASSERT_EQ(tracer.process().wait(), 0) << tracer.process().err();
  std::istringstream out(tracer.process().out());
  std::string json;
  std::set<std::string> mapped, shown;
  for (std::string line; std::getline(out, line);) {
    if (line[0] == '{')
      json += line + "\n";
    else if (auto path = line.find('/'); path != line.npos)
      mapped.insert(line.substr(path));
  }
  auto report = parse_report(json, tracer.process().err());
  for (auto& row : report.body)
    if (!row["file"].is_null()) shown.insert(row["file"].str());
  bool calls = !report.header["limits"].items().empty();
  std::size_t missing = 0;
  for (auto& path : mapped) missing += !shown.contains(path);
  EXPECT_FALSE(mapped.empty());
  EXPECT_LE(missing, calls ? 2u : 0u);
}

TOOL_TEST(Mmapfiles, Columns) {
  require_tool("mmapfiles");
  auto text = run({tool_path("mmapfiles"), "-P", "-r", "1", "--", "cat", "/dev/null"});
  ASSERT_EQ(text.status, 0) << text.err;
  auto rows = lines(text.out);
  ASSERT_GE(rows.size(), 3u) << text.out;
  EXPECT_EQ(words(rows[1]), (Strings{"PID", "COMM", "MAPS", "EXEC", "WRITE", "SIZE(KB)", "FILE"}));
}

const DeclareTests kMmapfiles{{
    .name = "mmapfiles",
    .reports = {{ReportKind::aggregate}},
    .events = {"-P", "segments --maps 20"},
    .stress = {.workload = "segments --maps {n}",
               .events = 20000,
               .shown = "maps",
               .truth = "file_maps",
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "-P 10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
