// Profiles that stack tools write with --pprof, read by an independent reader.
#include "harness.hpp"
#include "machine.hpp"
#include "profile_reader.hpp"

namespace coretap::tooltest {
namespace {

using Stack = std::pair<std::uint64_t, Strings>;  // of a process, leaf first
using Totals = std::map<Stack, std::pair<std::uint64_t, std::uint64_t>>;

/// Sums of a profile. A frame that readers must symbolize has no name.
Totals totals_of(const Json& profile) {
  Totals all;
  for (auto& s : profile["samples"].items()) {
    Strings names;
    for (auto& f : s["frames"].items())
      names.push_back(f["name"].str().empty() ? "[unknown]" : f["name"].str());
    auto values = s["values"].items();
    auto& sum = all[{s["pid"].u64(), names}];
    sum.first += values[0].u64();
    sum.second += values[1].u64();
  }
  return all;
}

/// "step" of "step (app.py:7)": profiles have a separate field for lines.
std::string without_line(const std::string& frame) {
  static const std::regex kLine(R"( \([^()]+:\d+\)$)");
  return std::regex_replace(frame, kLine, "");
}

/// Sums of the same run's lines.
Totals totals_of(const Report& report, const char* amount, std::uint64_t scale = 1) {
  Totals all;
  for (auto& line : report.body) {
    Strings names;
    if (line.has("runnable") && line["runnable"].boolean()) names.emplace_back("[runnable]");
    for (auto& f : line["kernel_stack"].strings()) names.push_back(f);
    for (auto& f : line["user_stack"].strings()) names.push_back(without_line(f));
    if (!line["user_stack_truncated"].is_null())
      names.push_back("[truncated: " + line["user_stack_truncated"].str() + "]");
    auto& sum = all[{line["pid"].is_null() ? 0 : line["pid"].u64(), names}];
    sum.first += line["count"].u64();
    sum.second += line[amount].u64() * scale;
  }
  return all;
}

class Pprof {
 public:
  std::string file() const { return directory_.path() + "/profile.pb.gz"; }

 private:
  TemporaryDirectory directory_;
};

TOOL_TEST(Pprof, WaitsAreThoseOfTheLines) {
  Pprof pprof;
  auto seen = observe("offcputime --json -p {pid} --pprof " + pprof.file(),
                      "sleeper --sleeps 20 --ms 5", {});
  auto profile = read_profile(pprof.file());
  EXPECT_EQ(profile["types"].strings(), (Strings{"contentions/count", "delay/nanoseconds"}));
  EXPECT_EQ(profile["period"].u64(), 0u);
  auto lines = totals_of(seen.report(), "total_ns");
  EXPECT_GE(lines.size(), 1u);
  EXPECT_EQ(totals_of(profile), lines);
  EXPECT_TRUE(profile["comments"].strings().at(0).starts_with("offcputime --json --pid "));
}

/// File offsets of the first and last byte of the function with this name, by readelf.
std::pair<std::uint64_t, std::uint64_t> place_in_file(const std::string& path,
                                                      const std::string& function) {
  auto told = run({"/bin/sh", "-c",
                   "readelf -sW '" + path + "' | awk '$8 == \"" + function +
                       "\" { print $2, $3; exit }'; "
                       "readelf -lW '" +
                       path + "' | awk '/LOAD.* E / { print $2, $3, $5; exit }'"});
  std::uint64_t address = 0, size = 0, offset = 0, at = 0;
  if (sscanf(told.out.c_str(), "%lx %lu\n%lx %lx", &address, &size, &offset, &at) != 4)
    throw std::runtime_error("readelf: " + told.out + told.err);
  return {address - at + offset, address - at + offset + size - 1};
}

// With these a server finds the file, and the function in it.
TOOL_TEST(Pprof, FramesHaveTheirPlacesInFiles) {
  if (run({"/bin/sh", "-c", "command -v readelf"}).status) throw Skip("no readelf");
  Pprof pprof;
  observe("offcputime --json -p {pid} --pprof " + pprof.file(), "sleeper --sleeps 20 --ms 2", {});
  auto path = workload_path("sleeper");
  auto build_id = run({"/bin/sh", "-c", "readelf -n '" + path + "' | sed -n 's/.*Build ID: //p'"});
  auto [first, last] = place_in_file(path, "workload_middle");
  std::uint64_t seen = 0;
  for (auto& s : read_profile(pprof.file())["samples"].items())
    for (auto& f : s["frames"].items()) {
      if (f["name"].str() != "workload_middle") continue;
      seen++;
      EXPECT_TRUE(f["file"].str().ends_with("/sleeper")) << f["file"].str();
      EXPECT_EQ(f["build_id"].str() + "\n", build_id.out);
      EXPECT_GE(f["offset"].u64(), first);
      EXPECT_LE(f["offset"].u64(), last);
    }
  EXPECT_GE(seen, 1u);
}

TOOL_TEST(Pprof, SamplesStandForTime) {
  Pprof pprof;
  auto report = report_of("profile --json -I -F 100 --duration 1 --pprof " + pprof.file());
  auto profile = read_profile(pprof.file());
  EXPECT_EQ(profile["types"].strings(), (Strings{"samples/count", "cpu/nanoseconds"}));
  EXPECT_EQ(profile["period"].u64(), 10'000'000u);
  EXPECT_EQ(totals_of(profile), totals_of(report, "count", 10'000'000));
  EXPECT_GE(profile["lasted"].u64(), 900'000'000u);
}

TOOL_TEST(Pprof, OutstandingMemory) {
  Pprof pprof;
  auto seen =
      observe("memleak --json -o 0 -i 1000 -p {pid} --pprof " + pprof.file(), "leaker --rounds 20");
  auto profile = read_profile(pprof.file());
  EXPECT_EQ(profile["types"].strings(), (Strings{"inuse_objects/count", "inuse_space/bytes"}));
  auto lines = totals_of(seen.report(), "bytes");
  EXPECT_GE(lines.size(), 1u);
  EXPECT_EQ(totals_of(profile), lines);
}

TOOL_TEST(Pprof, StandardOutputIsForOneThing) {
  require_tool("profile");
  Pprof pprof;
  auto result =
      run({tool_path("profile"), "-I", "--pprof", "-", "--duration", "0.3"}, {}, pprof.file());
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_GE(read_profile(pprof.file())["samples"].items().size(), 1u);
  expect_refused("profile --pprof /no/such/directory/p.pb.gz",
                 {"cannot write /no/such/directory/p.pb.gz"}, 1);
  auto terminal =
      run({"/usr/bin/script", "-qec", tool_path("profile") + " --pprof - 1", "/dev/null"});
  if (terminal.status != 127) {
    EXPECT_EQ(terminal.status, 2) << terminal.out;
    EXPECT_TRUE(contains(terminal.out, "is a terminal")) << terminal.out;
  }
}

}  // namespace
}  // namespace coretap::tooltest
