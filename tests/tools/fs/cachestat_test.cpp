// cachestat against a process that accesses a known number of pages of a file.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// Kernels without a tracepoint for accesses: a folio marked as accessed counts instead.
bool only_marks(const Report& report) { return !report.header["limits"].items().empty(); }

/// Each line is consistent, and no counter is below zero.
void check_counters(const Report& report) {
  auto above = [](std::uint64_t all, std::uint64_t part) { return all > part ? all - part : 0; };
  for (auto& line : report.body) {
    for (auto* key : {"added", "write_added", "hits", "misses", "accessed", "dirtied"})
      EXPECT_LT(line[key].u64(), 1u << 30) << key;
    auto hits = line["hits"].u64(), misses = line["misses"].u64();
    auto read = above(line["added"].u64(), line["write_added"].u64());
    expect_fields(line, {is("type", "interval"), is("hits", above(line["accessed"].u64(), misses)),
                         is("read_ahead", above(read, misses))});
    if (hits + misses) {
      EXPECT_NEAR(line["hit_ratio"].real(),
                  static_cast<double>(hits) / static_cast<double>(hits + misses), 1e-9);
    } else {
      EXPECT_TRUE(line["hit_ratio"].is_null());
    }
  }
}

struct Cached {
  Report report;
  Json truth;
  std::uint64_t pages;  ///< of the file
};

/// The accesses of this process only, from its start signal to its truth. It runs until the tool
/// has ended: where marks are counted, its exit marks all that it has mapped.
Cached cached(const std::string& options) {
  auto seen = observe("cachestat --json --strict -p {pid}", "pagecache " + options);
  auto report = seen.report();
  check_counters(report);
  return {report, seen.truth, seen.truth["file_pages"].u64()};
}

// The file does not fit into the memory cgroup of its reader.
TOOL_TEST(Cachestat, Refaults) {
  Workload workload("rereads", "--rounds 3");
  Counters around;
  Tracer tracer("cachestat", "--json --refaults 0.2"), plain("cachestat", "--json 0.2");
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop(), without = plain.stop();
  auto lacking = truth["file_pages"].u64() - truth["limit_pages"].u64();
  expect_within(report, {between("refaulted_pages", (truth["rounds"].u64() - 1) * lacking,
                                 around.growth("workingset_refault_file"))});
  for (auto& line : without.body) EXPECT_FALSE(line.has("refaulted_pages"));
}

TOOL_TEST(Cachestat, ColdReadsMiss) {
  auto [report, truth, pages] = cached("--phase cold");
  expect_within(report,
                {between("misses", pages, pages + kFewPages), at_most("hits", kFewPages),
                 exactly("write_added", 0), at_most("dirtied", kFewPages)});  // its metadata
}

TOOL_TEST(Cachestat, WarmReadsHit) {
  auto [report, truth, pages] = cached("--phase warm");
  // Once to warm up, once in the phase; reads of whole pages are marked equally often.
  auto accesses = 2 * truth["page_accesses"].u64();
  expect_within(report, {between("accessed", accesses, accesses + kFewPages),
                         at_least("hits", accesses - kFewPages), at_most("misses", kFewPages),
                         exactly("write_added", 0)});
}

// Ranges with ends within pages: a read accesses each page that it spans once. Read-ahead of one
// file does not reduce the hits of another.
TOOL_TEST(Cachestat, ReadAheadIsNoMiss) {
  auto [report, truth, pages] = cached("--phase ahead");
  auto accesses = truth["page_accesses"].u64();
  EXPECT_GE(accesses, pages);
  expect_within(report, {at_least("hits", accesses - kFewPages), at_most("misses", kFewPages),
                         between("read_ahead", pages - kFewPages, pages + kFewPages)});
}

TOOL_TEST(Cachestat, ReadsOfPartsOfPages) {
  for (std::string size : {"1000", "6000", "10000"}) {
    SCOPED_TRACE(size);
    auto [report, truth, pages] = cached("--phase warm --size 1m --read-size " + size);
    auto accesses = 2 * truth["page_accesses"].u64();
    // With marks only, a page in which the last read ended is not marked again.
    expect_within(report, {between("accessed", only_marks(report) ? 2 * pages : accesses,
                                   accesses + kFewPages),
                           at_most("misses", kFewPages)});
  }
}

TOOL_TEST(Cachestat, WritesAreNoMisses) {
  auto [report, truth, pages] = cached("--phase write");
  expect_within(report,
                {between("write_added", pages, pages + kFewPages), at_most("misses", kFewPages),
                 between("dirtied", pages, pages + kFewPages)});
}

TOOL_TEST(Cachestat, MappedFiles) {
  auto [report, truth, pages] = cached("--phase mmap");
  expect_within(report, {{"misses", 0, kFewPages}});
  if (only_marks(report)) throw Skip(report.header["limits"].strings().at(0));
  // The reads that warm it up, and at least one for each fault; faults map many pages around.
  auto faults = truth["phases"].items().at(0)["minor_faults"].u64();
  EXPECT_GT(faults, 0u);
  expect_within(
      report,
      {at_least("hits", pages + std::max<std::uint64_t>(1, faults - std::min(faults, kFewPages))),
       at_most("accessed", 2 * pages + kFewPages)});
}

// All accesses miss: a fault that waits for its page is retried, and counts once.
TOOL_TEST(Cachestat, FaultsOnAColdFile) {
  for (std::string how : {"", "--random"}) {
    SCOPED_TRACE(how);
    auto [report, truth, pages] = cached("--phase mmap-cold " + how);
    auto came = report.sum("misses") + report.sum("read_ahead");
    EXPECT_GE(came, pages);
    EXPECT_LE(came, pages + kFewPages);
    expect_within(report, {at_least("misses", how.empty() ? 1 : pages), at_most("hits", kFewPages),
                           exactly("write_added", 0)});
  }
}

TOOL_TEST(Cachestat, TextAndCsv) {
  const Strings columns("HITS MISSES DIRTIES HITRATIO% BUFFERS_MB CACHED_MB READAHEAD");
  const std::string row = R"( *\d+ +\d+ +\d+ +(\d+\.\d\d|-) +\d+ +\d+ +\d+)";
  EXPECT_EQ(expect_table(output_of("cachestat 0.1 2"), columns, row), 2u);
  EXPECT_EQ(2u, expect_table(output_of("cachestat -T 0.1 2"), Strings("TIME") + columns,
                             R"(\d\d:\d\d:\d\d)" + row));
  EXPECT_EQ(lines(output_of("cachestat --csv 0.1 1")).size(), 2u);
}

// Against the kernel's numbers; other files are added and dropped meanwhile.
TOOL_TEST(Cachestat, SizesOfTheCache) {
  auto line = line_with(parse_report(output_of("cachestat --json 0.1 1"), "").body, {});
  for (auto& [key, name] : {std::pair{"buffers_mb", "Buffers"}, {"cached_mb", "Cached"}})
    EXPECT_NEAR(line[key].real(), static_cast<double>(meminfo_bytes(name) >> 20), 64) << name;
}

TESTS_OF(cachestat, .events = {{}, "pagecache --size 262144"},
         .stress = total_row("pagecache --phase warm --rounds {n}", 10, "accessed",
                             [](stress::Load& load) { return 2 * load.truth("page_accesses"); })
                       .with_slack(kFewPages));

}  // namespace
}  // namespace coretap::tooltest
