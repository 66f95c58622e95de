// --perfetto of event tools, traceloop and `coretap show`: traces, read as the importer of Perfetto
// does, against the JSON lines of the same run.
#include "perfetto_reader.hpp"

#include <sys/stat.h>

#include <fstream>

namespace coretap::tooltest {
namespace {

using namespace std::chrono_literals;

std::vector<Json> slices_of(const Json& trace, const std::string& tool) {
  std::vector<Json> found;
  for (auto& s : trace["slices"].items())
    if (s["category"].str() == tool && s["track"].str() != "coretap: lost") found.push_back(s);
  return found;
}

/// Opens files that are there and files that are not, and waits, in several threads of a shell.
Strings opens(int times = 30) {
  return {"sh", "-c",
          "i=0; while [ $i -lt " + std::to_string(times) +
              " ]; do cat /etc/hostname /nonexistent.$i; i=$((i+1)); done >/dev/null 2>&1"};
}

/// Each event of the lines is a slice or a moment of the trace, with the same values.
void expect_events(const Json& trace, const std::vector<Json>& lines, const std::string& tool,
                   const char* latency, bool from_begin) {
  auto drawn = slices_of(trace, tool);
  ASSERT_EQ(drawn.size(), lines.size());
  ASSERT_FALSE(lines.empty());
  const auto ahead = trace["boot_ahead"].i64();
  std::map<std::pair<std::int64_t, std::uint64_t>, std::vector<Json>> by_time;
  for (auto& s : drawn) {
    auto at = s["ts"].i64() - ahead;
    const bool slice = !s["instant"].boolean();
    if (slice && !from_begin) at += s["dur"].i64();
    by_time[{at, s.has("tid") ? s["tid"].u64() : 0}].push_back(s);
  }
  for (auto& line : lines) {
    SCOPED_TRACE(line.text());
    auto found = by_time.find({line["monotonic_ns"].i64(), line["tid"].u64()});
    ASSERT_NE(found, by_time.end());
    auto s = found->second.back();
    found->second.pop_back();
    if (found->second.empty()) by_time.erase(found);
    EXPECT_EQ(s["pid"].u64(), line["pid"].u64());
    EXPECT_TRUE(s["slice"].str().starts_with(tool));
    for (auto* key : {"error", "path", "comm", "call"})
      if (line.has(key) && !line[key].is_null()) {
        EXPECT_EQ(s["args"][key].str(), line[key].str()) << key;
      }
    if (line.has(latency) && !line[latency].is_null()) {
      EXPECT_EQ(s["dur"].u64(), line[latency].u64());
      EXPECT_EQ(s["args"][latency].u64(), line[latency].u64());
    }
  }
}

struct PerfettoRun {
  TemporaryDirectory directory{};
  std::string path = directory.path() + "/t.pftrace";
  Report report;
  Json json{};

  explicit PerfettoRun(const Strings& words, const Strings& command = opens()) {
    auto tool = words.front();
    require_tool(tool);
    report = report_of(words + Strings{"--json", "--perfetto", path, "--"} + command);
    json = read_trace(path);
  }
};

TOOL_TEST(Perfetto, EventsAreSlicesOfTheirThreads) {
  PerfettoRun opened("opensnoop");
  expect_events(opened.json, opened.report.body, "opensnoop", "latency_ns", true);
  // Threads and processes have names.
  std::set<std::uint64_t> named;
  for (auto& t : opened.json["threads"].items())
    if (t["name"].str() == "cat" || t["name"].str() == "sh") named.insert(t["tid"].u64());
  std::map<std::uint64_t, std::string> processes;
  for (auto& p : opened.json["processes"].items()) processes[p["pid"].u64()] = p["name"].str();
  for (auto& line : opened.report.body) {
    EXPECT_TRUE(named.contains(line["tid"].u64()));
    EXPECT_TRUE(processes.contains(line["pid"].u64()));
  }
}

TOOL_TEST(Perfetto, TimesAreOfTheEndWhereRecordsAre) {
  PerfettoRun lived("exitsnoop");
  expect_events(lived.json, lived.report.body, "exitsnoop", "age_ns", false);
}

TOOL_TEST(Perfetto, EventsWithoutDurationAreMoments) {
  PerfettoRun started("execsnoop");
  expect_events(started.json, started.report.body, "execsnoop", "none", true);
  for (auto& s : slices_of(started.json, "execsnoop")) EXPECT_TRUE(s["instant"].boolean());
}

TOOL_TEST(Perfetto, CallsOfTraceloop) {
  PerfettoRun calls("traceloop");
  auto lines = lines_with(calls.report.body, {{"type", "call"}});
  auto drawn = slices_of(calls.json, "traceloop");
  EXPECT_EQ(drawn.size(), lines.size());
  std::multiset<std::tuple<std::string, std::uint64_t, std::uint64_t>> expected, found;
  for (auto& line : lines)
    if (!line["latency_ns"].is_null())
      expected.emplace("traceloop " + line["syscall"].str(), line["tid"].u64(),
                       line["latency_ns"].u64());
  for (auto& s : drawn)
    if (!s["instant"].boolean() && !s["args"].has("unfinished"))
      found.emplace(s["slice"].str(), s["tid"].u64(), s["dur"].u64());
  EXPECT_GT(expected.size(), 100u);
  EXPECT_EQ(found, expected);
}

// A buffer of a page, and a tool that does not read.
TOOL_TEST(Perfetto, LossesAreGaps) {
  require_tool("opensnoop");
  TemporaryDirectory directory;
  const auto path = directory.path() + "/t.pftrace";
  Tracer tracer("opensnoop", Strings("--json --ring-size 4096 --perfetto") + path);
  tracer.process().signal(SIGSTOP);
  run(opens(100));
  tracer.process().signal(SIGCONT);
  nap(300ms);
  auto report = tracer.stop();
  auto trace = read_trace(path);
  std::uint64_t lost = 0;
  for (auto& s : trace["slices"].items())
    if (s["track"].str() == "coretap: lost") lost += s["args"]["events"].u64();
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(lost, report.lost("lost"));
  EXPECT_EQ(slices_of(trace, "opensnoop").size(), report.body.size());
}

TOOL_TEST(Perfetto, OneTimelineOfSeveralRecordings) {
  for (auto* tool : {"opensnoop", "exitsnoop", "runqlat"}) require_tool(tool);
  TemporaryDirectory directory;
  const auto in = [&](const std::string& name) { return directory.path() + "/" + name; };
  // Tests beside this one have processes and files whose names a trace shows escaped.
  Tracer opened("opensnoop", Strings("--json --comm cat --record") + in("opensnoop.1.ctr")),
      ended("exitsnoop", Strings("--json --comm cat --record") + in("exitsnoop.1.ctr")),
      other("runqlat", Strings("--json --record") + in("runqlat.1.ctr"));
  run(opens());
  auto opens_seen = opened.stop(), ends_seen = ended.stop();
  other.stop();
  auto shown =
      run({tool_path("coretap"), "show", directory.path(), "--json", "--perfetto", in("all")});
  EXPECT_EQ(shown.status, 0) << shown.err;
  expect_contains(shown.err, {"no events of runqlat"});
  auto trace = read_trace(in("all"));
  expect_events(trace, opens_seen.body, "opensnoop", "latency_ns", true);
  expect_events(trace, ends_seen.body, "exitsnoop", "age_ns", false);
  // One recording gives what the run would have given.
  auto one = run({tool_path("coretap"), "show", in("opensnoop.1.ctr"), "--perfetto", in("one")});
  EXPECT_EQ(one.status, 0) << one.err;
  expect_events(read_trace(in("one")), opens_seen.body, "opensnoop", "latency_ns", true);
  struct stat file {};
  ASSERT_EQ(::stat(in("all").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TOOL_TEST(Perfetto, FilesThatCannotBeWritten) {
  require_tool("opensnoop");
  TemporaryDirectory directory;
  const auto in = [&](const char* name) { return directory.path() + "/" + name; };
  for (auto* wrong : {"-", ""}) expect_refused({"opensnoop", "--perfetto", wrong}, {"--perfetto"});
  EXPECT_EQ(result_of({"opensnoop", "--duration", "0.1", "--perfetto", "/nowhere/x"}).status, 1);
  ASSERT_EQ(::symlink(in("target").c_str(), in("link").c_str()), 0);
  std::ofstream(in("target")) << "kept";
  auto link = result_of({"opensnoop", "--duration", "0.1", "--perfetto", in("link")});
  EXPECT_EQ(link.status, 1) << link.err;
  EXPECT_EQ(slurp(in("target")), "kept");
  // A full disk: the tool goes on, and says so at the end.
  auto full = result_of(Strings{"opensnoop", "--json", "--perfetto", "/dev/full", "--"} + opens());
  EXPECT_EQ(full.status, 1);
  expect_contains(full.err, {"No space left"});
  EXPECT_GT(parse_report(full.out, full.err).body.size(), 30u);
  // A reader of a pipe that does not read.
  ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0600), 0);
  const int reader = ::open(in("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  auto stalled =
      result_of(Strings{"opensnoop", "--json", "--perfetto", in("pipe"), "--"} + opens(1500));
  ::close(reader);
  EXPECT_EQ(stalled.status, 1) << stalled.err;
  expect_contains(stalled.err, {"too slow"});
  EXPECT_GT(parse_report(stalled.out, stalled.err).body.size(), 3000u);
  // The old file stays until the new one is whole.
  std::ofstream(in("old")) << "kept";
  {
    Tracer tracer("opensnoop", Strings("--json --perfetto") + in("old"));
    EXPECT_EQ(slurp(in("old")), "kept");
    tracer.process().signal(SIGKILL);
    tracer.process().wait();
  }
  EXPECT_EQ(slurp(in("old")), "kept");
}

}  // namespace
}  // namespace coretap::tooltest
