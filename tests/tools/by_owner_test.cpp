// --by of owners: for every tool whose rows have owners, the counts for a cgroup equal those of the
// same tool with a filter for this cgroup. Both trace the same workload at the same time.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

/// Keys that --by takes in a report of the tool.
Strings by_keys(const std::string& tool, const Strings& options) {
  auto refused = result_of(tool + options + "--by no_such_key");
  const std::string before = "there are: ";
  auto at = refused.err.find(before);
  if (at == std::string::npos) return {};
  auto list = refused.err.substr(at + before.size());
  Strings keys;
  for (std::size_t from = 0; from < list.size();) {
    auto end = std::min(list.find_first_of(",\n", from), list.size());
    keys.push_back(list.substr(from, end - from));
    from = list.find_first_not_of(", \n", end);
  }
  return keys;
}

bool has(const Strings& keys, const char* key) { return std::ranges::count(keys, key) != 0; }

/// Options of the tool's aggregates whose rows can have owners.
std::vector<Strings> owned_reports(const std::string& tool) {
  std::vector<Strings> all;
  for (auto& report : tests_of(tool).reports) {
    if (report.kind != ReportKind::aggregate) continue;
    auto keys = by_keys(tool, report.options);
    if (has(keys, "cgroup") && has(keys, "uid")) all.push_back(report.options);
  }
  return all;
}

std::vector<std::string> tools_with_aggregates() {
  std::vector<std::string> all;
  for (auto& [tool, tests] : declared_tests())
    if (std::ranges::count(tests.reports, ReportKind::aggregate, &ToolTests::Report::kind) != 0)
      all.push_back(tool);
  return all;
}

/// Counters of events in these lines: times of two tools differ, and maxima are not sums.
std::map<std::string, std::uint64_t> counters(const std::vector<Json>& lines) {
  static const std::set<std::string> kNotCounted = {"pid", "tid",       "ppid",
                                                    "uid", "cgroup_id", "cpu"};
  std::map<std::string, std::uint64_t> sums;
  for (auto& line : lines)
    for (auto& key : line.keys()) {
      auto value = line[key.c_str()];
      if (!value.is_count() || kNotCounted.contains(key)) continue;
      if (contains(key, "_ns") || contains(key, "max") || contains(key, "average")) continue;
      sums[key] += value.u64();
    }
  return sums;
}

TOOL_SUITE(ByOwner, (tools_with_aggregates()));

void expect_as_filtered(const std::string& tool, const Strings& options) {
  auto events = events_for(tool);
  if (events.command.empty()) throw Skip("no workload is known that makes events for it");
  Cgroup cgroup("-by-owner");
  auto name = cgroup.path().substr(cgroup.path().rfind('/'));
  auto workload_name = events.command[0].substr(events.command[0].rfind('/') + 1);
  Workload workload(workload_name, {events.command.begin() + 1, events.command.end()},
                    {.linger = true, .in_child = [&] { cgroup.add(::getpid()); }});
  Tracer by(tool, "--json" + options + "--by cgroup,uid");
  Tracer filtered(tool, "--json" + options + Strings{"--cgroup", cgroup.path()});
  // Distances between requests count from the one before, which both have seen then.
  TemporaryDirectory directory;
  Process(
      {.argv = {"dd", "if=/dev/zero", "of=" + directory.path() + "/file", "count=1", "conv=fsync"}})
      .wait();
  workload.release();
  workload.truth();
  auto all = by.stop(), some = filtered.stop();
  // A tool may have a last line of sums over all rows.
  for (auto* body : {&all.body, &some.body})
    std::erase_if(*body, [](auto& line) { return line["type"].str() == "total"; });
  std::vector<Json> of_cgroup;
  for (auto& line : all.body) {
    EXPECT_TRUE(line.has("cgroup") && line.has("uid"));
    if (line["cgroup"].is_string() && line["cgroup"].str().ends_with(name))
      of_cgroup.push_back(line);
  }
  auto expected = counters(some.body), seen = counters(of_cgroup);
  if (std::ranges::all_of(expected, [](auto& one) { return one.second == 0; }))
    throw Skip("with a filter by cgroup its workload makes nothing that it counts");
  // The workload waits for its end while one tool has ended and the other has not.
  auto slack = static_cast<double>(1 + tests_of(tool).stress.slack);
  for (auto& [key, sum] : seen)
    EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(expected[key]),
                slack + 0.03 * static_cast<double>(expected[key]))
        << key;
  EXPECT_FALSE(seen.empty()) << "nothing was counted";
}

TOOL_TEST_P(ByOwner, AsFiltered, tool) {
  require_tool(tool);
  auto reports = owned_reports(tool);
  if (reports.empty()) throw Skip("it has no rows by cgroup and user");
  for (auto& options : reports) expect_as_filtered(tool, options);
}

}  // namespace
}  // namespace coretap::tooltest
