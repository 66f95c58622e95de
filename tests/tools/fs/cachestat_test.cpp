// cachestat against a process that touches a known number of pages of a file.
#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

// Blocks that the file system looks its extents up in, and pages of the workload's own code.
constexpr std::uint64_t kFew = 64;

/// Kernels without a tracepoint for accesses: a folio that is marked is what counts as one.
bool only_marks(const Report& report) { return !report.header["limits"].items().empty(); }

/// Each line says of itself what it can, and no counter went below zero.
void check_lines(const Report& report) {
  constexpr std::uint64_t kSane = 1u << 30;
  for (auto& line : report.body) {
    EXPECT_EQ(line["type"].str(), "interval");
    auto added = line["added"].u64(), written = line["write_added"].u64();
    auto hits = line["hits"].u64(), misses = line["misses"].u64(),
         accessed = line["accessed"].u64();
    for (auto value : {added, written, hits, misses, accessed, line["dirtied"].u64()})
      EXPECT_LT(value, kSane);
    EXPECT_EQ(hits, accessed > misses ? accessed - misses : 0);
    auto read = added > written ? added - written : 0;
    EXPECT_EQ(line["read_ahead"].u64(), read > misses ? read - misses : 0);
    if (hits + misses) {
      EXPECT_NEAR(line["hit_ratio"].real(),
                  static_cast<double>(hits) / static_cast<double>(hits + misses), 1e-9);
    } else {
      EXPECT_TRUE(line["hit_ratio"].is_null());
    }
  }
}

struct Observed {
  Report report;
  Json truth;
  std::uint64_t pages;  ///< of the file

  std::uint64_t sum(const char* key) const { return report.sum(key); }
};

/// It lives until the tool is gone: where marks are counted, all that it has mapped is marked at
/// its end.
/// What the process does from its start signal to its truth, and nothing of any other.
Observed observe(Strings arguments, Strings filter = {}) {
  require_tool("cachestat");
  Workload workload("pagecache", std::move(arguments), kLinger);
  if (filter.empty()) filter = {"-p", workload.id()};
  filter.insert(filter.begin(), {"--json", "--strict"});
  Tracer tracer("cachestat", filter);
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  check_lines(report);
  return {.report = report, .truth = truth, .pages = truth["file_pages"].u64()};
}

TOOL_TEST(Cachestat, ColdReadsMiss) {
  auto seen = observe({"--phase", "cold"});
  EXPECT_GE(seen.sum("misses"), seen.pages);
  EXPECT_LE(seen.sum("misses"), seen.pages + kFew);
  EXPECT_LE(seen.sum("hits"), kFew);
  EXPECT_EQ(seen.sum("write_added"), 0u);
  EXPECT_LE(seen.sum("dirtied"), kFew) << "only its metadata";
}

TOOL_TEST(Cachestat, WarmReadsHit) {
  auto seen = observe({"--phase", "warm"});
  // Once to warm up, once in the phase; reads of whole pages are marked as often.
  auto accesses = 2 * seen.truth["page_accesses"].u64();
  EXPECT_GE(seen.sum("accessed"), accesses);
  EXPECT_LE(seen.sum("accessed"), accesses + kFew);
  EXPECT_GE(seen.sum("hits"), accesses - kFew);
  EXPECT_LE(seen.sum("misses"), kFew);
  EXPECT_EQ(seen.sum("write_added"), 0u);
}

// Ranges with ends within pages: each page that a read spans is wanted once by it.
// What is read ahead of one file takes nothing from the hits on another.
TOOL_TEST(Cachestat, ReadAheadIsNoMiss) {
  auto seen = observe({"--phase", "ahead"});
  auto accesses = seen.truth["page_accesses"].u64();
  EXPECT_GE(accesses, seen.pages);
  EXPECT_GE(seen.sum("hits") + kFew, accesses);
  EXPECT_LE(seen.sum("misses"), kFew);
  EXPECT_GE(seen.sum("read_ahead") + kFew, seen.pages);
  EXPECT_LE(seen.sum("read_ahead"), seen.pages + kFew);
}

TOOL_TEST(Cachestat, ReadsOfPartsOfPages) {
  for (auto* size : {"1000", "6000", "10000"}) {
    SCOPED_TRACE(size);
    auto seen = observe({"--phase", "warm", "--size", "1m", "--read-size", size});
    auto accesses = 2 * seen.truth["page_accesses"].u64();
    EXPECT_LE(seen.sum("accessed"), accesses + kFew);
    // Where marks are all there is, a page that the last read ended in is not marked again.
    EXPECT_GE(seen.sum("accessed"), only_marks(seen.report) ? 2 * seen.pages : accesses);
    EXPECT_LE(seen.sum("misses"), kFew);
  }
}

TOOL_TEST(Cachestat, WritesAreNoMisses) {
  auto seen = observe({"--phase", "write"});
  EXPECT_GE(seen.sum("write_added"), seen.pages);
  EXPECT_LE(seen.sum("write_added"), seen.pages + kFew);
  EXPECT_LE(seen.sum("misses"), kFew);
  EXPECT_GE(seen.sum("dirtied"), seen.pages);
  EXPECT_LE(seen.sum("dirtied"), seen.pages + kFew);
}

TOOL_TEST(Cachestat, MappedFiles) {
  auto seen = observe({"--phase", "mmap"});
  EXPECT_LE(seen.sum("misses"), kFew);
  if (only_marks(seen.report)) throw Skip(seen.report.header["limits"].strings().at(0));
  // The reads that warm it up, and at least one for each fault; faults map many pages around.
  auto faults = seen.truth["phases"].items().at(0)["minor_faults"].u64();
  EXPECT_GT(faults, 0u);
  EXPECT_GE(seen.sum("hits"), seen.pages + faults - std::min<std::uint64_t>(faults, kFew));
  EXPECT_GT(seen.sum("hits"), seen.pages);
  EXPECT_LE(seen.sum("accessed"), 2 * seen.pages + kFew);
}

// Nothing is found in the cache: a fault that waits for its page is tried again, and is still one.
TOOL_TEST(Cachestat, FaultsOnAColdFile) {
  for (auto& how :
       std::vector<Strings>{{"--phase", "mmap-cold"}, {"--phase", "mmap-cold", "--random"}}) {
    SCOPED_TRACE(how.back());
    auto seen = observe(how);
    EXPECT_GE(seen.sum("misses") + seen.sum("read_ahead"), seen.pages);
    EXPECT_LE(seen.sum("misses") + seen.sum("read_ahead"), seen.pages + kFew);
    EXPECT_GE(seen.sum("misses"), how.back() == "--random" ? seen.pages : 1);
    EXPECT_LE(seen.sum("hits"), kFew);
    EXPECT_EQ(seen.sum("write_added"), 0u);
  }
}

TOOL_TEST(Cachestat, FollowsACommand) {
  require_tool("cachestat");
  Tracer tracer(
      "cachestat",
      {"--json", "--strict", "--", workload_path("pagecache"), "--phase", "cold,warm,write"},
      {.attached = false});
  auto report = tracer.finish();
  check_lines(report);
  ASSERT_TRUE(report.truth);
  auto pages = (*report.truth)["file_pages"].u64();
  // The file is made first, which is a write as well; "warm" reads twice. Its program and libraries
  // are in the cache mostly; what is not, is read ahead in large pieces.
  constexpr std::uint64_t kProgram = 512;
  EXPECT_GE(report.sum("write_added"), 2 * pages);
  EXPECT_LE(report.sum("write_added"), 2 * pages + kFew);
  EXPECT_GE(report.sum("dirtied"), 2 * pages);
  EXPECT_GE(report.sum("misses"), pages);
  EXPECT_LE(report.sum("misses"), pages + kProgram);
  EXPECT_GE(report.sum("hits") + kFew, 2 * pages);
}

TOOL_TEST(Cachestat, IntervalsLoseAndDoubleNothing) {
  require_tool("cachestat");
  Workload workload("pagecache", {"--rounds", "20", "--size", "8m", "--phase", "cold,warm,write"});
  Tracer whole("cachestat", {"--json", "--strict", "-p", workload.id(), "1000"});
  Tracer parts("cachestat", {"--json", "--strict", "-p", workload.id(), "0.1"});
  workload.release();
  workload.truth();
  auto once = whole.stop(), often = parts.stop();
  check_lines(once);
  check_lines(often);
  EXPECT_EQ(once.body.size(), 1u);
  EXPECT_GT(often.body.size(), 1u);
  for (auto* key : {"accessed", "added", "write_added", "dirtied"}) {
    EXPECT_GT(once.sum(key), 0u) << key;
    EXPECT_EQ(once.sum(key), often.sum(key)) << key;
  }
}

TOOL_TEST(Cachestat, Filters) {
  require_tool("cachestat");
  Cgroup cgroup;
  constexpr uid_t kUser = 54321;
  Workload wanted("pagecache", {"--phase", "warm", "--comm", "pc-wanted"}, kLinger);
  Workload other("pagecache", {"--phase", "warm"});
  cgroup.add(wanted.pid());
  std::vector<Strings> filters{
      {"-p", wanted.id()}, {"-t", wanted.id()}, {"--comm", "pc-wanted"}, {"-c", cgroup.path()}};
  std::vector<std::unique_ptr<Tracer>> tracers;
  for (auto filter : filters) {
    filter.insert(filter.begin(), {"--json", "--strict"});
    tracers.push_back(std::make_unique<Tracer>("cachestat", filter));
  }
  Tracer nobody("cachestat", {"--json", "--strict", "-u", std::to_string(kUser)});
  Tracer all("cachestat", {"--json", "--strict"});
  wanted.release();
  other.release();
  auto accesses = 2 * wanted.truth()["page_accesses"].u64();
  other.truth();
  for (std::size_t i = 0; i < filters.size(); i++) {
    SCOPED_TRACE(filters[i][0]);
    auto report = tracers[i]->stop();
    EXPECT_GE(report.sum("accessed"), accesses);
    EXPECT_LE(report.sum("accessed"), accesses + kFew);
  }
  EXPECT_EQ(nobody.stop().sum("accessed"), 0u);
  EXPECT_GE(all.stop().sum("accessed"), 2 * accesses);
}

TOOL_TEST(Cachestat, TextAndCsv) {
  require_tool("cachestat");
  const Strings columns{"HITS",       "MISSES",    "DIRTIES",  "HITRATIO",
                        "BUFFERS_MB", "CACHED_MB", "READAHEAD"};
  Strings timed{"TIME"};
  timed.insert(timed.end(), columns.begin(), columns.end());
  static const std::regex numbers(R"( *\d+ +\d+ +\d+ +(\d+\.\d\d%|-) +\d+ +\d+ +\d+)"),
      clock(R"(\d\d:\d\d:\d\d)");
  for (bool time : {false, true}) {
    Strings argv{tool_path("cachestat"), "0.1", "2"};
    if (time) argv.push_back("-T");
    auto result = run(argv);
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(safe_for_terminals(result.out));
    std::istringstream lines(result.out);
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(words(line), time ? timed : columns);
    int rows = 0;
    for (; std::getline(lines, line); rows++) {
      if (time) {
        ASSERT_GT(line.size(), 8u) << line;
        EXPECT_TRUE(std::regex_match(line.substr(0, 8), clock)) << line;
        line.erase(0, 8);
      }
      EXPECT_TRUE(std::regex_match(line, numbers)) << line;
    }
    EXPECT_EQ(rows, 2);
  }
  auto csv = run({tool_path("cachestat"), "--csv", "0.1", "1"});
  ASSERT_EQ(csv.status, 0) << csv.err;
  EXPECT_TRUE(csv.out.starts_with(
      "time,hits,misses,dirtied,hit_ratio,buffers_mb,cached_mb,read_ahead,accessed,added,write_added\n"))
      << csv.out;
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 2);
}

// Beside the kernel's own numbers; others' files come and go meanwhile.
TOOL_TEST(Cachestat, SizesOfTheCache) {
  require_tool("cachestat");
  auto meminfo_mb = [](const std::string& key) {
    std::istringstream lines(slurp("/proc/meminfo"));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(key + ":")) return std::stod(line.substr(key.size() + 1)) / 1024;
    throw std::runtime_error(key + " is not in /proc/meminfo");
  };
  Tracer tracer("cachestat", {"--json", "0.1", "1"});
  auto report = tracer.finish();
  ASSERT_EQ(report.body.size(), 1u);
  EXPECT_NEAR(report.body[0]["buffers_mb"].real(), meminfo_mb("Buffers"), 64);
  EXPECT_NEAR(report.body[0]["cached_mb"].real(), meminfo_mb("Cached"), 64);
}

const DeclareTests kCachestat{{
    .name = "cachestat",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "pagecache --size 262144"},
    .stress = {.workload = "pagecache --phase warm --rounds {n}",
               .events = 10,
               .shown = "accessed",
               .truth = [](stress::Load& load) { return 2 * load.truth("page_accesses"); },
               .slack = kFew},
    .long_run = {{.arguments = "5"}},
}};

}  // namespace
}  // namespace coretap::tooltest
