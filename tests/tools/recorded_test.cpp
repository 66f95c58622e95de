// --record and `coretap show`: for each kind of report, what the run printed is printed again from
// the file, in each form of output, without rights.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "harness.hpp"

namespace coretap::tooltest {
namespace {

using namespace std::chrono_literals;

struct RecordedKind {
  std::string words;
  std::vector<std::string> forms;
  std::vector<std::string> more = {};  ///< words with blanks
};
const RecordedKind kRecordedKinds[] = {
    {"opensnoop", {"", "--json", "--csv", "--timestamp --json"}},
    {"biosnoop", {"", "--json", "--csv"}},
    {"runqlat 0.3 2", {"", "--json", "--csv"}},
    {"biotop -C", {"", "--json", "--csv", "--sort bytes --json"}},
    {"syscount -L", {"", "--json", "--csv", "--top 3"}},
    {"offcputime --kernel-stacks-only", {"--folded", "--json", "--csv", "--functions"}},
    {"profile", {"", "--json", "--csv", "--functions"}},
    {"loads", {"", "--json", "--csv"}},
    {"walltime -v", {"", "--json", "--csv"}},
    {"blockedby", {"", "--json", "--csv"}},
    {"neighbours", {"", "--json", "--csv"}},
    {"funcinterval", {"", "--json", "--csv"}},
    {"cachestat 0.3 2", {"", "--json", "--csv"}},
    {"cputimes 0.3 2", {"", "--json", "--csv"}},
    {"perfcount -A 0.3 2", {"", "--json", "--csv"}},
    {"traceloop --comm cat", {"", "--json", "--csv", "--dump-on-exit", "--dump-on-exit --json"}},
    {"trace",
     {"", "--json", "--csv", "--msg-filter passwd"},
     {"sys_openat \"%-30s %#x %ld\", filename, flags, $tgid",
      "t:sched:sched_process_exec (args->pid > 0) \"%s by %d\", args->filename, args->pid",
      "t:sched:sched_wakeup"}},
    {"trace --max-events 5", {"", "--json", "--csv"}, {"sys_openat \"%s\", filename"}},
    {"argdist -i 0.3",
     {"", "--json", "--csv", "--top 2 --json"},
     {"-C", "t:sched:sched_switch():char*,int:args->next_comm,args->next_prio",
      "r::sys_read():int:$retval#read"}},
    {"argdist -H", {"", "--json", "--csv"}, {"r::sys_read():int:$retval"}},
    {"ksnoop", {"", "--json", "--csv"}, {"t:sched:sched_process_exec", "sys_openat(filename)"}},
    {"biolatency --fine -D 0.3 2", {"", "--json", "--csv", "--heatmap"}},
    {"bitesize --fine 0.3 2", {"", "--json", "--csv"}},
    {"vfssize --fine 0.3 2", {"", "--json", "--csv"}},
};

/// Something to see for each tool: opens, reads, writes that reach the disk, switches.
struct ThingsToSee {
  TemporaryDirectory directory;
  Process shell{Spawn{
      .argv = {"/bin/sh", "-c",
               "while :; do cat /etc/passwd /etc/hostname; dd if=/dev/zero of=" + directory.path() +
                   "/file bs=64k count=4 conv=fsync; "
                   "sleep 0.01; done >/dev/null 2>&1"}}};
};

class Recorded : public ::testing::TestWithParam<RecordedKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Recorded, ::testing::ValuesIn(kRecordedKinds), [](auto& info) {
  // A tool may stand here twice, with different options: all words are the name.
  std::string name = info.param.words;
  for (auto& letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  return name;
});

TEST_P(Recorded, IsShownAsPrinted) {
  auto words = Strings(GetParam().words);
  const auto tool = words.front();
  require_tool(tool);
  TemporaryDirectory directory;
  for (auto& form : GetParam().forms) {
    SCOPED_TRACE(form);
    const auto file = directory.path() + "/one.ctr";
    const ThingsToSee load;
    auto live = run(Strings{tool_path(tool)} + Strings(words.begin() + 1, words.end()) +
                    Strings(GetParam().more) + Strings(form) +
                    Strings{"--record", file, "--duration", "0.7"});
    ASSERT_EQ(live.status, 0) << live.err;
    expect_contains(live.err, {"recorded"});
    auto shown = run(Strings{tool_path("coretap"), "show", file} + Strings(form));
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_EQ(shown.out, live.out);
    EXPECT_FALSE(shown.out.empty());
  }
}

TEST(Recording, PicturesAndProfilesAreTheSame) {
  TemporaryDirectory directory;
  const auto in = [&](const char* name) { return directory.path() + "/" + name; };
  const ThingsToSee load;
  struct {
    const char *words, *option;
  } const kFiles[] = {{"offcputime", "--svg"},
                      {"walltime", "--svg"},
                      {"profile", "--pprof"},
                      {"opensnoop", "--perfetto"},
                      {"traceloop --comm cat", "--perfetto"}};
  for (auto& [words, option] : kFiles) {
    SCOPED_TRACE(words);
    const auto command = Strings(words);
    require_tool(command.front());
    auto live =
        run(Strings{tool_path(command.front())} + Strings(command.begin() + 1, command.end()) +
            Strings{"--duration", "0.7", option, in("live.svg"), "--record", in("ctr")});
    ASSERT_EQ(live.status, 0) << live.err;
    auto shown = run({tool_path("coretap"), "show", in("ctr"), option, in("shown.svg")});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_EQ(slurp(in("shown.svg")), slurp(in("live.svg")));
  }
}

/// The file is the same, byte for byte; with --last, its parts are those of the recorded run.
TEST(Recording, TimelinesAreTheSame) {
  require_tool("timeline");
  TemporaryDirectory directory;
  const auto in = [&](const char* name) { return directory.path() + "/" + name; };
  const auto trace = in("t.pftrace"), file = in("one.ctr");
  for (auto* more : {"", "--json", "--csv --only sched,irq,syscalls,block,faults,net --comm cat",
                     "--last 300ms", "--last 300ms --json"}) {
    SCOPED_TRACE(more);
    const ThingsToSee load;
    auto live = run(Strings{tool_path("timeline"), "--perfetto", trace, "--record", file} +
                    Strings(more) + Strings{"--duration", "0.9"});
    ASSERT_EQ(live.status, 0) << live.err;
    const auto printed = slurp(trace);
    ASSERT_GT(printed.size(), 1000u);
    std::filesystem::remove(trace);
    auto shown = run(Strings{tool_path("coretap"), "show", file, "--perfetto", trace} +
                     (std::string(more).find("json") != std::string::npos  ? Strings{"--json"}
                      : std::string(more).find("csv") != std::string::npos ? Strings{"--csv"}
                                                                           : Strings{}));
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_EQ(shown.out, live.out);
    EXPECT_TRUE(slurp(trace) == printed) << slurp(trace).size() << " bytes, not " << printed.size();
  }
  // It is only recorded: no trace is written beside the recording.
  std::filesystem::remove(trace);
  const ThingsToSee load;
  auto only =
      run({tool_path("coretap"), "record", "-o", file, "-d", "1", "timeline", "--perfetto", trace});
  EXPECT_EQ(only.status, 0) << only.err;
  EXPECT_FALSE(std::filesystem::exists(trace));
  EXPECT_EQ(run({tool_path("coretap"), "show", file, "--perfetto", trace}).status, 0);
  EXPECT_GT(slurp(trace).size(), 1000u);
}

/// The first report of a state is made at once; of longer intervals, each has its own data.
TEST(Recording, SnapshotsAreShownAtOtherIntervals) {
  require_tool("loads");
  TemporaryDirectory directory;
  const auto file = directory.path() + "/one.ctr";
  const ThingsToSee load;
  auto live = run({tool_path("loads"), "--json", "--record", file, "1", "4"});
  ASSERT_EQ(live.status, 0) << live.err;
  // The header has the options, the ledger counts the rows shown.
  auto body = [](const std::string& out) {
    const auto begin = out.find('\n') + 1;
    return out.substr(begin, out.find("{\"type\":\"ledger\"") - begin);
  };
  std::vector<std::string> reports;
  for (auto& line : lines(body(live.out))) {
    if (line.find("\"averages\"") != std::string::npos) reports.emplace_back();
    ASSERT_FALSE(reports.empty());
    reports.back() += line + "\n";
  }
  ASSERT_EQ(reports.size(), 4u);
  auto shown = [&](const std::vector<std::string>& words) {
    std::vector<std::string> command{tool_path("coretap"), "show", file, "--json"};
    command.insert(command.end(), words.begin(), words.end());
    auto done = run(command);
    EXPECT_EQ(done.status, 0) << done.err;
    return body(done.out);
  };
  EXPECT_EQ(shown({"--interval", "1"}), body(live.out));
  EXPECT_EQ(shown({"--interval", "2"}), reports[0] + reports[2]);
  EXPECT_EQ(shown({"--interval", "3"}), reports[0] + reports[3]);
  EXPECT_EQ(shown({"2"}), reports[0] + reports[2]);
  EXPECT_EQ(shown({"1", "3"}), reports[0] + reports[1] + reports[2]);
}

TEST(Recording, WhatWasKilledIsShownToItsLastSecond) {
  require_tool("opensnoop");
  TemporaryDirectory directory;
  std::mt19937 random(1);
  for (int i = 0; i < 2; i++) {
    const auto file = directory.path() + "/killed.ctr";
    const ThingsToSee load;
    Process tool(Spawn{.argv = {tool_path("opensnoop"), "--json", "--record", file},
                       .stdout_path = directory.path() + "/live"});
    std::this_thread::sleep_for(std::chrono::milliseconds(1800 + random() % 1500));
    tool.signal(SIGKILL);
    tool.wait();
    auto shown = run({tool_path("coretap"), "show", file, "--json"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    expect_contains(shown.err, {"without its end"});
    const auto live = lines(slurp(directory.path() + "/live")), kept = lines(shown.out);
    ASSERT_GT(kept.size(), 10u);
    // All but the last second, and nothing else; the last line of both may be another.
    auto at = [](const std::string& line) { return Json::parse(line)["monotonic_ns"].u64(); };
    EXPECT_GT(static_cast<double>(at(kept[kept.size() - 2])) + 1.1e9 * slowness(),
              static_cast<double>(at(live[live.size() - 2])));
    for (std::size_t i = 1; i + 2 < kept.size(); i++) ASSERT_EQ(kept[i], live[i]);
  }
}

/// Before the first second ends, and at the last write.
TEST(Recording, FilesThatCannotBeWritten) {
  require_tool("execsnoop");
  const Mounted full("tmpfs", "size=64k");
  std::ofstream(full.path() + "/file") << std::string(1 << 16, 'x');
  for (auto* seconds : {"0.2", "2.5"}) {
    SCOPED_TRACE(seconds);
    auto live =
        run({tool_path("execsnoop"), "--record", full.path() + "/one.ctr", "--duration", seconds});
    EXPECT_NE(live.status, 0);
    const auto at = live.err.find("No space left on device");
    EXPECT_NE(at, std::string::npos) << live.err;
    EXPECT_EQ(live.err.find("No space left on device", at + 1), std::string::npos) << live.err;
  }
}

TEST(Recording, OptionsOfTheTracingAreRefused) {
  require_tool("runqlat");
  TemporaryDirectory directory;
  const auto file = directory.path() + "/one.ctr";
  ASSERT_EQ(run({tool_path("runqlat"), "--record", file, "--duration", "0.3"}).status, 0);
  struct stat found {};
  ASSERT_EQ(::stat(file.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  for (auto* wrong : {"-p 1", "-P", "--comm x", "-m", "--by comm", "--queue"}) {
    SCOPED_TRACE(wrong);
    auto shown = run(Strings{tool_path("coretap"), "show", file} + Strings(wrong));
    EXPECT_EQ(shown.status, 2);
    EXPECT_TRUE(shown.err.find("was decided when") != std::string::npos ||
                shown.err.find("unknown option") != std::string::npos)
        << shown.err;
  }
  const auto calls = directory.path() + "/calls.ctr";
  ASSERT_EQ(run({tool_path("trace"), "--record", calls, "--duration", "0.3", "sys_getppid"}).status,
            0);
  for (auto* wrong : {"-Z 10", "--string-size=10", "-p 1", "sys_getpid"}) {
    SCOPED_TRACE(wrong);
    auto shown = run(Strings{tool_path("coretap"), "show", calls} + Strings(wrong));
    EXPECT_EQ(shown.status, 2);
    EXPECT_TRUE(contains(shown.err, "was decided when")) << shown.err;
  }
  auto info = run({tool_path("coretap"), "show", "--info", file});
  EXPECT_EQ(info.status, 0);
  expect_contains(info.out, {"runqlat --duration=0.3", "whole"});
  EXPECT_EQ(run({tool_path("coretap"), "show", "/etc/hostname"}).status, 2);
  EXPECT_EQ(run({tool_path("coretap"), "show"}).status, 2);
  EXPECT_NE(run({tool_path("runqlat"), "--record", "/nowhere/file"}).status, 0);
}

}  // namespace
}  // namespace coretap::tooltest
