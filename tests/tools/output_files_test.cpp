// --output for log shippers: files that are renamed, reopened and appended to, and the rate limit.
// Against programs that know the number of their events.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

using namespace std::chrono_literals;

/// A tool's output files, the oldest first.
struct Written {
  std::vector<Json> events, headers, ledgers;
  std::vector<std::size_t> sizes;
};

Written read_files(const Strings& files) {
  Written all;
  for (auto& file : files) {
    SCOPED_TRACE(file);
    auto text = slurp(file);
    all.sizes.push_back(text.size());
    bool first = true;
    for (auto& line : lines(text)) {
      auto json = Json::parse(line);
      auto type = json["type"].str();
      EXPECT_EQ(json["tool"].str(), "opensnoop");
      EXPECT_TRUE(!std::exchange(first, false) || type == "header") << line;
      (type == "header"   ? all.headers
       : type == "ledger" ? all.ledgers
                          : all.events)
          .push_back(json);
    }
  }
  return all;
}

/// FILE.99 to FILE.1, and FILE: those that exist.
Strings with_old_ones(const std::string& file) {
  Strings all;
  for (int n = 99; n > 0; n--)
    if (auto old = file + "." + std::to_string(n); ::access(old.c_str(), F_OK) == 0)
      all.push_back(old);
  all.push_back(file);
  return all;
}

/// One thread opens files one after another: no two have the same time.
void expect_in_order(const Written& written) {
  for (std::size_t i = 1; i < written.events.size(); i++) {
    ASSERT_GT(written.events[i]["monotonic_ns"].u64(), written.events[i - 1]["monotonic_ns"].u64());
    ASSERT_GE(written.events[i]["time"].str(), written.events[i - 1]["time"].str());
  }
}

struct Place {
  TemporaryDirectory directory;
  std::string file = directory.path() + "/opens.jsonl";
};

/// opensnoop --json --output FILE; tracing when the constructor returns.
class ToFile {
 public:
  ToFile(const Place& place, const std::string& pids, const Strings& options) {
    tracer_ = std::make_unique<Tracer>(
        "opensnoop", "--json --strict -p " + pids + Strings{"--output", place.file} + options,
        Tracer::How{.attached = false});
    if (!until([&] { return contains(slurp(place.file), "\"type\":\"header\""); }))
      throw std::runtime_error(tracer_->process().err());
  }
  Process& process() { return tracer_->process(); }
  /// Returns its standard error.
  std::string end() {
    EXPECT_EQ(tracer_->stop_text(), "");
    return process().err();
  }

 private:
  std::unique_ptr<Tracer> tracer_;
};

TOOL_TEST(OutputFiles, RotationKeepsEachEvent) {
  require_tool("opensnoop");
  struct {
    std::uint64_t opens;
    const char* rotate;
    bool all_kept;
  } cases[] = {{400, "64K,3", true}, {5000, "64K,99", true}, {5000, "64K,3", false}};
  for (auto& c : cases) {
    SCOPED_TRACE(c.rotate);
    Place place;
    Workload workload("opener", {"--count", std::to_string(c.opens)});
    ToFile tool(place, workload.id(), {"--rotate", c.rotate});
    workload.release();
    workload.truth();
    tool.end();
    auto files = with_old_ones(place.file);
    auto written = read_files(files);
    for (auto size : written.sizes) EXPECT_LE(size, 64u << 10);
    for (auto& file : files) {
      struct stat st {};
      ASSERT_EQ(::stat(file.c_str(), &st), 0);
      EXPECT_EQ(st.st_mode & 0777, 0600u);
    }
    EXPECT_EQ(written.headers.size(), files.size());
    ASSERT_EQ(written.ledgers.size(), 1u);
    auto& ledger = written.ledgers[0];
    EXPECT_EQ(ledger["shown"].u64(), c.opens);
    EXPECT_EQ(ledger["lost"].u64(), 0u);
    expect_in_order(written);
    if (c.all_kept) {
      EXPECT_EQ(written.events.size(), c.opens);
      EXPECT_GE(files.size(), c.opens / 200);
    } else {
      EXPECT_EQ(files.size(), 4u);
      EXPECT_LT(written.events.size(), c.opens);
      for (std::size_t i = 0; i < 3; i++) EXPECT_GT(written.sizes[i], 62u << 10) << "filled";
    }
  }
}

// As logrotate does it, while events arrive.
TOOL_TEST(OutputFiles, SignalOpensTheFileAgain) {
  require_tool("opensnoop");
  Place place;
  constexpr std::uint64_t kOpens = 20'000;
  Workload workload("opener", {"--count", std::to_string(kOpens)});
  ToFile tool(place, workload.id(), {});
  Strings files;
  workload.release();
  for (int i = 0; i < 4; i++) {
    files.push_back(place.file + "." + std::to_string(i));
    ASSERT_EQ(::rename(place.file.c_str(), files.back().c_str()), 0);
    tool.process().signal(SIGUSR1);
    ASSERT_TRUE(until([&] { return ::access(place.file.c_str(), F_OK) == 0; }));
  }
  workload.truth();
  // Without a new file at the path nothing changes.
  tool.process().signal(SIGUSR1);
  std::this_thread::sleep_for(50ms);
  tool.end();
  files.push_back(place.file);
  auto written = read_files(files);
  EXPECT_EQ(written.headers.size(), files.size());
  EXPECT_EQ(written.events.size(), kOpens);
  ASSERT_EQ(written.ledgers.size(), 1u);
  EXPECT_EQ(written.ledgers[0]["shown"].u64(), kOpens);
  expect_in_order(written);
}

// Its signal to dump is one of the two available.
TOOL_TEST(OutputFiles, TraceloopKeepsItsSignal) {
  require_tool("traceloop");
  for (bool own : {true, false}) {
    Place place;
    Workload workload("opener", "--count 5", kLinger);
    Tracer tracer("traceloop",
                  {"--json", "--output", place.file, "--dump-signal", own ? "USR1" : "USR2", "-p",
                   workload.id()},
                  {.attached = false});
    ASSERT_TRUE(until([&] { return contains(slurp(place.file), "\"type\":\"header\""); }));
    workload.release();
    workload.truth();
    auto moved = place.file + ".1";
    ASSERT_EQ(::rename(place.file.c_str(), moved.c_str()), 0);
    tracer.process().signal(SIGUSR1);
    ASSERT_TRUE(until([&] {
      return own ? contains(slurp(moved), "\"type\":\"dump\"")
                 : ::access(place.file.c_str(), F_OK) == 0;
    }));
    tracer.stop_text();
    EXPECT_EQ(::access(place.file.c_str(), F_OK) == 0, !own);
    EXPECT_EQ(contains(slurp(moved), "\"type\":\"ledger\""), own);
  }
}

TOOL_TEST(MaxRate, WhatIsAboveIsCounted) {
  constexpr std::uint64_t kOpens = 5000, kRate = 100;
  Workload workload("opener", {"--count", std::to_string(kOpens)});
  Tracer tracer("opensnoop",
                {"--json", "--strict", "--max-rate", std::to_string(kRate), "-p", workload.id()});
  auto begun = std::chrono::steady_clock::now();
  workload.release();
  workload.truth();
  auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  auto report = tracer.stop();
  auto shown = report.body.size();
  EXPECT_GE(shown, kRate);
  EXPECT_LE(shown, kRate + static_cast<std::uint64_t>(seconds * kRate) + 1);
  expect_fields(report.ledger,
                {{"shown", shown}, {"limited", kOpens - shown}, {"data_lost", false}});
  EXPECT_EQ(report.ledger["seen"].u64(), kOpens + report.ledger["filtered"].u64());
  expect_contains(report.err, {std::to_string(kOpens - shown) + "  limited: above --max-rate"});
}

// Lines of several tools can be in one file. Lines of reports are checked wherever they are read.
TOOL_TEST(JsonLines, NameTheirTool) {
  std::set<std::string> types;
  auto check = [&](const std::string& tool, const Strings& options) {
    for (auto& line : lines(result_of(tool + " --json" + options).out)) {
      auto json = Json::parse(line);
      expect_fields(json, {{"tool", tool}});
      types.insert(json["type"].str());
    }
  };
  for (auto& tool : tool_names()) check(tool, "--explain");
  check("extfrag", "--explain --index");
  check("syscount", "--list");
  for (auto* type : {"hook", "limit", "map", "source", "syscall"})
    EXPECT_TRUE(types.contains(type)) << type;
}

}  // namespace
}  // namespace coretap::tooltest
