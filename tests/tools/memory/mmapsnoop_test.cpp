// mmapsnoop against a program that makes known calls of mmap.
#include <regex>
#include <set>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Mmapsnoop, EveryMappingOfAFile) {
  require_tool("mmapsnoop");
  Workload workload("segments", {"--maps", "20"}, kLinger);
  Tracer own("mmapsnoop", {"--json", "--strict", "-p", workload.id()});
  Tracer nobody("mmapsnoop", {"--json", "--strict", "-u", "54321"});
  workload.release();
  auto truth = workload.truth();
  auto report = own.stop();
  EXPECT_TRUE(nobody.stop().body.empty());
  ASSERT_EQ(report.body.size(), truth["file_maps"].u64());
  EXPECT_GE(report.lost("filtered"), truth["rounds"].u64()) << "anonymous ones";

  struct {
    const char *protection, *kind;
    std::uint64_t pages, at_page;
  } expected[] = {
      {"R-E", "-P--", 1, 0}, {"RW-", "S---", 2, 1}, {"R--", "-PF-", 1, 0}, {"R--", "-P--", 1, 0}};
  auto page = truth["page"].u64();
  for (std::size_t i = 0; i < report.body.size(); i++) {
    auto& event = report.body[i];
    auto& e = expected[i % 4];
    EXPECT_EQ(event["pid"].i64(), workload.pid());
    EXPECT_EQ(event["comm"].str(), "segments");
    EXPECT_EQ(event["protection"].str(), e.protection);
    EXPECT_EQ(event["kind"].str(), e.kind);
    EXPECT_EQ(event["size_bytes"].u64(), e.pages * page);
    EXPECT_EQ(event["offset_bytes"].u64(), e.at_page * page);
    if (i % 4 == 3) {
      EXPECT_EQ(event["file"].str(), "/");
      EXPECT_EQ(event["error"].str(), "ENODEV");
      EXPECT_TRUE(event["address"].is_null());
    } else {
      EXPECT_EQ(event["file"].str(), truth["path"].str());
      EXPECT_TRUE(event["error"].is_null());
      EXPECT_EQ(event["address"].u64() % page, 0u);
    }
    if (i % 4 == 2) {
      EXPECT_EQ(event["address"].u64(), report.body[i - 1]["address"].u64());
    }
  }
}

TOOL_TEST(Mmapsnoop, AnonymousOnesAndFailures) {
  require_tool("mmapsnoop");
  Workload workload("segments", {"--maps", "10"}, kLinger);
  Tracer all("mmapsnoop", {"--json", "--strict", "-a", "-p", workload.id()});
  Tracer failed("mmapsnoop", {"--json", "--strict", "-x", "-a", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  std::size_t anonymous = 0, of_files = 0, page = truth["page"].u64();
  for (auto& event : all.stop().body) {
    bool ours = event["size_bytes"].u64() == 4 * page;  // the C library may have others
    if (event["file"].is_null()) {
      EXPECT_EQ(event["kind"].str(), "-P-A");
      EXPECT_TRUE(event["offset_bytes"].is_null());
      EXPECT_TRUE(event["inode"].is_null());
      anonymous += ours;
    } else {
      of_files++;
    }
  }
  EXPECT_EQ(of_files, truth["file_maps"].u64());
  EXPECT_EQ(anonymous, truth["rounds"].u64());
  auto failures = failed.stop().body;
  EXPECT_EQ(failures.size(), truth["rounds"].u64());
  for (auto& event : failures) EXPECT_EQ(event["error"].str(), "ENODEV");
}

// What a program maps when it starts is what it has, but for the program and its loader.
TOOL_TEST(Mmapsnoop, LibrariesOfACommand) {
  require_tool("mmapsnoop");
  Tracer tracer("mmapsnoop", {"--json", "--", "cat", "/proc/self/maps"}, {.attached = false});
  ASSERT_EQ(tracer.process().wait(), 0) << tracer.process().err();
  std::istringstream lines(tracer.process().out());
  Strings libraries;
  std::string maps, json;
  for (std::string line; std::getline(lines, line);) (line[0] == '{' ? json : maps) += line + "\n";
  std::set<std::string> shown, mapped;
  for (auto& event : parse_report(json, tracer.process().err()).body)
    if (!event["file"].is_null()) shown.insert(event["file"].str());
  static const std::regex file(R"((/\S*\.so\S*)\n)");
  for (std::sregex_iterator at(maps.begin(), maps.end(), file), end; at != end; ++at)
    if (auto path = (*at)[1].str(); !contains(path, "/ld-")) mapped.insert(path);
  EXPECT_FALSE(mapped.empty());
  for (auto& path : mapped) EXPECT_TRUE(shown.contains(path)) << path;
}

TOOL_TEST(Mmapsnoop, ColumnsOfThePeer) {
  require_tool("mmapsnoop");
  const Strings usual{"PID", "COMM", "PROT", "MAP", "OFFS(KB)", "SIZE(KB)", "FILE"};
  EXPECT_EQ(header_of("mmapsnoop", {}), usual);
  EXPECT_EQ(header_of("mmapsnoop", {"-T"}),
            (Strings{"TIME", "PID", "COMM", "PROT", "MAP", "OFFS(KB)", "SIZE(KB)", "FILE"}));
  Workload workload("segments", {"--maps", "1"}, kLinger);
  Tracer tracer("mmapsnoop", {"-T", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto kb = truth["page"].u64() / 1024;
  std::istringstream lines(tracer.stop_text());
  std::string line;
  std::getline(lines, line);
  for (int i = 0; i < 4; i++) {
    ASSERT_TRUE(std::getline(lines, line));
    if (i != 1) continue;
    auto cells = words(line);
    ASSERT_EQ(cells.size(), 8u) << line;
    EXPECT_EQ((Strings{cells.begin() + 1, cells.end()}),
              (Strings{workload.id(), "segments", "RW-", "S---", std::to_string(kb),
                       std::to_string(2 * kb), truth["path"].str()}));
  }
}

const DeclareTests kMmapsnoop{{
    .name = "mmapsnoop",
    .events = {"-T", "segments --maps 3"},
    .stress = {.workload = "segments --maps {n/4}",
               .events = 1200,
               .truth = "file_maps",
               .tiny = "--ring-size 8192"},
    .long_run = {{.arguments = "-a"}},
}};

}  // namespace
}  // namespace coretap::tooltest
