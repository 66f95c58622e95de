#include "cli/naming.hpp"
#include "cli/parser.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "coretap/tool.hpp"
#include "places.hpp"

namespace coretap {
namespace {

using Words = std::vector<std::string>;
using Ids = std::vector<std::uint32_t>;

/// The tool by any of its names.
Result<Invocation> parse(std::string_view name, Words words) {
  auto call = called(name);
  if (!call.tool) return Error{"no tool " + std::string(name)};
  if (!call.option.empty()) words.emplace(words.begin(), call.option);
  return parse_command_line(build(*call.tool), words);
}

Config accepted(std::string_view tool, const Words& words) {
  auto result = parse(tool, words);
  if (!result) {
    ADD_FAILURE() << tool << ": " << result.error().what;
    return {};
  }
  return result->config;
}

/// The message of a refusal, with its hint: what the user sees.
std::string refused(std::string_view tool, const Words& words) {
  auto result = parse(tool, words);
  if (result) {
    ADD_FAILURE() << tool << " took it: " << ::testing::PrintToString(words);
    return {};
  }
  EXPECT_EQ(result.error().status, kUsage) << result.error().what;
  return result.error().what + " | " + result.error().hint;
}

testing::AssertionResult says(const std::string& message, std::string_view part) {
  if (message.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << message << "' does not say '" << part << "'";
}

TEST(CommandLine, EmptyMeansDefaults) {
  auto c = accepted("biolatency", {});
  EXPECT_EQ(c.format, OutputFormat::text);
  EXPECT_EQ(c.interval, 0);
  EXPECT_EQ(c.count, 0u);
  EXPECT_EQ(c.duration, 0);
  EXPECT_FALSE(c.filters_tasks());
  EXPECT_TRUE(c.edits().empty());
  EXPECT_TRUE(c.given_options().empty());
  EXPECT_EQ(accepted("cachestat", {}).interval, 1);
}

TEST(CommandLine, BundledLetters) {
  auto c = accepted("biolatency", {"-mT"});
  EXPECT_TRUE(c.given("milliseconds"));
  EXPECT_TRUE(c.given("timestamp"));
  c = accepted("biolatency", {"-mTp1,2", "5"});
  EXPECT_TRUE(c.given("timestamp"));
  EXPECT_EQ(c.pids, (Ids{1, 2}));
  EXPECT_EQ(c.interval, 5);
  c = accepted("offcputime", {"-df", "-p", "1234", "30"});
  EXPECT_TRUE(c.given("delimited"));
  EXPECT_TRUE(c.given("folded"));
  EXPECT_EQ(c.duration, 30);
}

TEST(CommandLine, ListsAndRepetition) {
  EXPECT_EQ(accepted("runqlat", {"-p1,2"}).pids, (Ids{1, 2}));
  EXPECT_EQ(accepted("runqlat", {"--pid=1,2", "-p", "3"}).pids, (Ids{1, 2, 3}));
  EXPECT_EQ(accepted("runqlat", {"-t7", "--tid", "8"}).tids, (Ids{7, 8}));
  EXPECT_EQ(accepted("runqlat", {"-p2147483647"}).pids, (Ids{2147483647}));
  for (auto* bad : {"", "0", "-1", "+1", "1,", ",1", "1,,2", "1 2", " 1", "1x", "0x10",
                    "2147483648", "99999999999999999999", "1,2\n", "abc", "1;2"})
    EXPECT_TRUE(says(refused("runqlat", {"--pid", bad}), "--pid")) << bad;
  EXPECT_TRUE(says(refused("runqlat", {"-t", "x"}), "--tid"));
}

TEST(CommandLine, RepeatedFiltersAddUp) {
  EXPECT_EQ(accepted("runqlat", {"--comm", "a", "--comm=b,c d"}).comms, (Words{"a", "b", "c d"}));
  EXPECT_EQ(accepted("runqlat", {"--name", "a,b", "--name=c"}).names, (Words{"a,b", "c"}));
  EXPECT_EQ(accepted("runqlat", {"-u", "root,7", "-u8"}).uids, (Ids{0, 7, 8}));
  EXPECT_EQ(accepted("opensnoop", {"-f", "O_WRONLY", "-f", "O_RDWR"}).text("flag-filter"),
            "O_WRONLY,O_RDWR");
}

TEST(CommandLine, Exclusion) {
  auto c = accepted("runqlat", {"--not-pid", "1", "--not-pid=2,3", "--not-comm", "a,b"});
  EXPECT_EQ(c.not_pids, (Ids{1, 2, 3}));
  EXPECT_EQ(c.not_comms, (Words{"a", "b"}));
  EXPECT_TRUE(says(refused("runqlat", {"--not-pid", "1", "-p", "2"}), "--not-pid cannot be used"));
  EXPECT_TRUE(says(refused("runqlat", {"--not-pid", "1", "--", "true"}), "--not-pid cannot"));
  EXPECT_TRUE(
      says(refused("runqlat", {"--not-comm", "a", "--comm", "b"}), "--not-comm and --comm"));
  EXPECT_TRUE(says(refused("runqlat", {"--not-comm", ","}), "--not-comm: an empty name"));
}

TEST(CommandLine, OtherRepeatedValuesAreRefused) {
  EXPECT_TRUE(says(refused("runqlat", {"-c", "a", "--cgroup", "b"}),
                   "--cgroup is given twice: 'a' and 'b'"));
  EXPECT_TRUE(says(refused("offcputime", {"-m5", "-m", "7"}), "--min-block-time is given twice"));
  EXPECT_TRUE(says(refused("biolatency", {"-i", "1", "--interval=2"}), "--interval"));
  auto c = accepted("offcputime", {"-m5", "-m", "5", "-f", "-f"});
  EXPECT_EQ(c.number("min-block-time", 0), 5u) << "the same value says nothing new";
}

// The JSON header repeats the options; one that forgets what is traced would mislead.
TEST(CommandLine, RepeatedListsAreRememberedWhole) {
  auto c = accepted("runqlat", {"-p1", "-p2,3"});
  auto pid = c.given_options().find("pid");
  ASSERT_NE(pid, c.given_options().end());
  EXPECT_EQ(pid->second, "1,2,3");
}

TEST(CommandLine, IntervalAndCount) {
  auto c = accepted("biolatency", {"1", "10"});
  EXPECT_EQ(c.interval, 1);
  EXPECT_EQ(c.count, 10u);
  c = accepted("biolatency", {"-D", "100ms", "-T", "3"});  // options may stand between
  EXPECT_DOUBLE_EQ(c.interval, 0.1);
  EXPECT_EQ(c.count, 3u);
  EXPECT_EQ(accepted("cachestat", {"5"}).interval, 5);
  EXPECT_EQ(accepted("cachestat", {"-i", "2s"}).interval, 2);
  for (auto* bad : {"", "0", "0.0", "x", "1x", "nan", "inf", "1e400", "2000000000", "1 ", "0x1"})
    EXPECT_TRUE(says(refused("biolatency", {bad}), "is not between 0.001 and 1e9 seconds")) << bad;
  for (auto* bad : {"", "0", "1.5", "x", "1s", "18446744073709551616"})
    EXPECT_TRUE(says(refused("biolatency", {"1", bad}), "COUNT: '")) << bad;
  EXPECT_TRUE(says(refused("biolatency", {"1", "2", "3"}), "unexpected argument '3'"));
  // A dash makes it an option, not an interval.
  EXPECT_TRUE(says(refused("biolatency", {"-5"}), "-5"));
}

// A report each nanosecond is a slip of the fingers that would keep a CPU busy.
TEST(CommandLine, RefusesIntervalsThatNobodyCanRead) {
  for (auto* tiny : {"1e-300", "0.000000001", "1e-9ms"}) {
    EXPECT_FALSE(parse("biolatency", {tiny})) << tiny;
    EXPECT_FALSE(parse("biolatency", {"-i", tiny})) << tiny;
  }
}

TEST(CommandLine, Duration) {
  EXPECT_EQ(accepted("offcputime", {"5"}).duration, 5);
  EXPECT_EQ(accepted("offcputime", {"--duration", "2m"}).duration, 120);
  EXPECT_EQ(accepted("drsnoop", {"-d10"}).duration, 10);
  EXPECT_EQ(accepted("biolatency", {"--duration=1h"}).duration, 3600);
  EXPECT_TRUE(says(refused("offcputime", {"1", "2"}), "unexpected argument '2'"));
  EXPECT_TRUE(says(refused("offcputime", {"x"}), "DURATION: 'x' is not between"));
  EXPECT_TRUE(says(refused("drsnoop", {"5"}), "unexpected argument '5'"));
  EXPECT_TRUE(says(refused("drsnoop", {"-d", "soon"}), "--duration"));
  EXPECT_TRUE(
      says(refused("drsnoop", {"-d0"}), "--duration: '0' is not between 0.001 and 1e9 seconds"));
}

TEST(CommandLine, CommandBehindTwoDashes) {
  auto c = accepted("biolatency", {"-T", "--", "dd", "-m", "--", "if=big"});
  EXPECT_EQ(c.command, (Words{"dd", "-m", "--", "if=big"}));
  EXPECT_FALSE(c.given("milliseconds")) << "the command's options are its own";
  EXPECT_TRUE(c.filters_tasks());
  c = accepted("runqlat", {"1", "--", "--help"});
  EXPECT_EQ(c.interval, 1);
  EXPECT_EQ(c.command, (Words{"--help"}));
  EXPECT_TRUE(says(refused("runqlat", {"--"}), "command"));
  EXPECT_TRUE(says(refused("runqlat", {"-p1", "--", "true"}), "--pid"));
  EXPECT_TRUE(says(refused("runqlat", {"-t1", "--", "true"}), "--tid"));
  EXPECT_TRUE(accepted("runqlat", {"--exit-status", "--", "true"}).given("exit-status"));
  EXPECT_TRUE(says(refused("runqlat", {"--exit-status"}), "--"));
}

TEST(CommandLine, AliasesAndAbbreviations) {
  EXPECT_TRUE(accepted("drsnoop", {"--extended"}).given("extended"));
  EXPECT_TRUE(accepted("drsnoop", {"--extended_fields"}).given("extended"));
  EXPECT_TRUE(accepted("drsnoop", {"--ext"}).given("extended"))
      << "its alias does not make it ambiguous";
  EXPECT_TRUE(accepted("biolatency", {"--milli"}).given("milliseconds"));
  EXPECT_TRUE(says(refused("biolatency", {"--m"}), "--m is ambiguous"));
  EXPECT_TRUE(says(refused("biolatency", {"--m"}), "--milliseconds, --max-keys"));
  EXPECT_EQ(accepted("biolatency", {"--max_keys", "7"}).max_keys, 7u) << "as some peers write it";
  EXPECT_TRUE(accepted("drsnoop", {"--extended-fields"}).given("extended"));
  EXPECT_EQ(accepted("llcstat", {"--sample_period", "70000"}).sampling.period, 70000u);
  EXPECT_TRUE(accepted("wakeuptime", {"--useronly"}).given("user-threads-only"));
}

TEST(CommandLine, BadOptionsAreNamed) {
  EXPECT_TRUE(says(refused("biolatency", {"--nonsense"}), "--nonsense"));
  EXPECT_TRUE(says(refused("biolatency", {"--nonsense=1"}), "--nonsense"));
  EXPECT_TRUE(says(refused("biolatency", {"-mX"}), "-X"));
  EXPECT_TRUE(says(refused("biolatency", {"-m", "1", "-X"}), "-X"));
  EXPECT_TRUE(says(refused("biolatency", {"--pid"}), "--pid needs a value"));
  EXPECT_TRUE(says(refused("biolatency", {"1", "--pid"}), "--pid needs a value"));
  EXPECT_TRUE(says(refused("biolatency", {"-p"}), "-p needs a value"));
  EXPECT_TRUE(says(refused("biolatency", {"--json=1"}), "--json takes no value"));
  EXPECT_TRUE(says(refused("biolatency", {"--nonsense"}), "biolatency --help"));
  // Hostile letters: refused, whatever they are.
  for (auto* bad : {"-:", "-;", "-\xff", "-\x1b", "---", "--=", "-W", "-Wfoo"})
    refused("biolatency", {bad});
}

TEST(CommandLine, WhatMayBeMeant) {
  EXPECT_TRUE(says(refused("biolatency", {"--millisecnds"}), "did you mean --milliseconds?"));
  EXPECT_TRUE(says(refused("biolatency", {"--intervall=5"}), "did you mean --interval?"));
  EXPECT_TRUE(says(refused("drsnoop", {"--extended_feilds"}), "did you mean --extended-fields?"));
  EXPECT_TRUE(says(refused("profile", {"--unwind", "autp"}), "did you mean 'auto'?"));
  EXPECT_TRUE(says(refused("syscount", {"--syscall", "opneat"}), "did you mean 'openat'?"));
  EXPECT_TRUE(says(refused("syscount", {"--sort", "cuont"}), "did you mean 'count'?"));
  EXPECT_FALSE(says(refused("biolatency", {"--something-else"}), "did you mean"));
}

TEST(CommandLine, RatesOfSampling) {
  auto c = accepted("profile", {"-F", "99"});
  EXPECT_EQ(c.sampling.hz, 99u);
  EXPECT_EQ(c.sampling.period, 0u);
  c = accepted("profile", {"--period", "50000"});
  EXPECT_EQ(c.sampling.period, 50000u);
  EXPECT_EQ(c.sampling.hz, 0u);
  EXPECT_EQ(accepted("profile", {}).sampling.hz, 0u) << "the hook's own";
  for (auto* bad : {"0", "1", "49999", "10000000001", "-1", "x", ""})
    EXPECT_TRUE(
        says(refused("profile", {"--period", bad}), "is not a number from 50000 to 10000000000"));
  for (auto* bad : {"0", "20001", "-1", "x", "1.5"})
    EXPECT_TRUE(says(refused("profile", {"-F", bad}), "is not a number from 1 to ")) << bad;
  EXPECT_TRUE(says(refused("profile", {"-F", "99", "--period", "60000"}), "used together"));
}

TEST(CommandLine, ParsesTwice) {
  // getopt keeps state between calls; a failure half-way through a bundle must not leak.
  refused("biolatency", {"-mXT"});
  auto c = accepted("biolatency", {"-D", "1"});
  EXPECT_TRUE(c.given("disks"));
  EXPECT_FALSE(c.given("timestamp"));
  EXPECT_EQ(c.interval, 1);
}

TEST(CommandLine, HelpAndVersionAskForNothingElse) {
  auto r = parse("biolatency", {"--help", "these", "are", "not", "read"});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->what, Invocation::help);
  r = parse("biolatency", {"-V"});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->what, Invocation::version);
  r = parse("biolatency", {"-h", "--json", "--csv"});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->what, Invocation::help);
}

TEST(CommandLine, HelpAsArgpHasIt) {
  auto r = parse("runqlat", {"-?"});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->what, Invocation::help);
  r = parse("runqlat", {"--usage"});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->what, Invocation::usage);
}

// What bcc and libbpf-tools have: the same here, or refused with what to use instead.
TEST(PeersCommandLines, MeanTheSame) {
  for (auto* tool : {"opensnoop", "execsnoop", "drsnoop"}) {
    EXPECT_EQ(accepted(tool, {"-n", "mount"}).names, Words{"mount"}) << tool;
    EXPECT_EQ(accepted(tool, {"--name", "mount"}).names, Words{"mount"}) << tool;
    EXPECT_TRUE(accepted(tool, {"-n", "mount"}).comms.empty()) << tool;
  }
  EXPECT_EQ(accepted("profile", {"-c", "1000000", "5"}).sampling.period, 1'000'000u);
  EXPECT_EQ(accepted("profile", {"--count", "1000000"}).sampling.period, 1'000'000u);
  EXPECT_EQ(accepted("profile", {"-L", "181"}).tids, Ids{181});
  EXPECT_TRUE(accepted("opensnoop", {"-c"}).given("callers"));
  EXPECT_TRUE(accepted("opensnoop", {"--extended-fields"}).given("extended"));
  EXPECT_TRUE(accepted("opensnoop", {"--flag_filter", "O_WRONLY"}).given("flag-filter"));
  EXPECT_EQ(accepted("syscount", {"-i", "0"}).interval, 0);
  EXPECT_EQ(accepted("syscount", {"-c", "a/path"}).cgroup, "a/path");
  EXPECT_TRUE(accepted("execsnoop", {"-P", "1"}).given("ppid"));
  EXPECT_TRUE(accepted("execsnoop", {"--ppid", "1", "-C", "-M"}).given("parent"));
}

TEST(PeersCommandLines, AreTakenOrRefusedAsListed) {
  std::istringstream lines(places::data_text("peers.txt"));
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    SCOPED_TRACE(line);
    count++;
    auto arrow = std::min(line.find(" => "), line.find(" ~> "));
    std::istringstream words(line.substr(0, arrow));
    std::string tool;
    words >> tool;
    Words arguments;
    for (std::string word; words >> std::quoted(word, '\'');) arguments.push_back(word);
    bool machine = arrow != line.npos && line[arrow + 1] == '~';
    if (arrow == line.npos || (machine && parse(tool, arguments)))
      accepted(tool, arguments);
    else
      EXPECT_TRUE(says(refused(tool, arguments), line.substr(arrow + 4)));
  }
  EXPECT_GT(count, 350) << "the 194 of the review, and those of other tools";
}

TEST(PeersCommandLines, ToolsOfPeersSayWhatDiffers) {
  std::istringstream lines(places::data_text("peers.txt"));
  std::set<std::string> tools;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && line[0] != '#')
      if (auto* tool = called(line.substr(0, line.find(' '))).tool) tools.emplace(tool->name);
  std::size_t differ = 0;
  for (auto& entry : registry()) {
    auto tool = build(entry);
    // What agrees with its peers in all has rows only.
    differ += !tool.differs.empty();
    EXPECT_TRUE(tool.differs.empty() || tools.contains(std::string(entry.name))) << entry.name;
    for (auto& d : tool.differs) EXPECT_TRUE(d.what.ends_with('.')) << entry.name << d.what;
  }
  EXPECT_GE(differ, 45u);
}

TEST(PeersCommandLines, AreRefusedWithWhatToUse) {
  struct Line {
    const char* tool;
    Words words;
    const char* instead;
  };
  for (auto& line : std::vector<Line>{{"syscount", {"-c", "1"}, "--ppid 1 or --cgroup 1"},
                                      {"syscount", {"--exec", "ls"}, "after --"},
                                      {"opensnoop", {"-b", "128"}, "--ring-size"},
                                      {"opensnoop", {"--buffer-pages=128"}, "--ring-size"},
                                      {"opensnoop", {"--exec", "ls"}, "after --"},
                                      {"opensnoop", {"5"}, "--duration 5"},
                                      {"profile", {"-A", "2"}, "--json"},
                                      {"profile", {"-dA", "2"}, "--json"},
                                      {"profile", {"--hash-storage-size", "9"}, "--stack-storage"},
                                      {"wakeuptime", {"-v"}, "--verbose"},
                                      {"tcplife", {"-stT"}, "--csv"},
                                      {"biolatency", {"--ebpf"}, "--explain"},
                                      {"execsnoop", {"--cgroupmap", "/sys/fs/bpf/x"}, "--cgroup"},
                                      {"execsnoop", {"--mntnsmap", "/sys/fs/bpf/x"}, "--cgroup"}})
    EXPECT_TRUE(says(refused(line.tool, line.words), line.instead)) << line.tool;
}

TEST(CommandLine, Formats) {
  EXPECT_EQ(accepted("biolatency", {"-j"}).format, OutputFormat::json);
  EXPECT_EQ(accepted("biolatency", {"--csv"}).format, OutputFormat::csv);
  EXPECT_TRUE(says(refused("biolatency", {"--csv", "--json"}), "--json and --csv"));
}

TEST(CommandLine, FilesOfOutput) {
  auto c = accepted("execsnoop", {"-o", "f", "--rotate", "64K"});
  EXPECT_EQ(c.rotate_bytes, 64u << 10);
  EXPECT_EQ(c.rotate_keep, 3u);
  c = accepted("runqlat", {"-o", "f", "--rotate", "1G,99", "--append"});
  EXPECT_EQ(c.rotate_bytes, 1u << 30);
  EXPECT_EQ(c.rotate_keep, 99u);
  EXPECT_EQ(accepted("execsnoop", {"-o", "f"}).rotate_bytes, 0u);
  EXPECT_TRUE(says(refused("execsnoop", {"--rotate", "1M"}), "--rotate needs --output"));
  EXPECT_TRUE(says(refused("execsnoop", {"--append"}), "--append needs --output"));
  for (auto size : {"0", "", "1023", "x", "1T", "-1", ",3", "1025G"})
    EXPECT_TRUE(says(refused("execsnoop", {"-o", "f", "--rotate", size}), "from 1K to 1024G"))
        << size;
  for (auto keep : {"1M,0", "1M,100", "1M,", "1M,3,4", "1M,x"})
    EXPECT_TRUE(says(refused("execsnoop", {"-o", "f", "--rotate", keep}), "from 1 to 99")) << keep;
  EXPECT_TRUE(says(refused("offcputime", {"-o", "f", "--rotate", "1M", "--svg", "-"}), "--rotate"));
  EXPECT_EQ(accepted("execsnoop", {"--max-rate", "200"}).max_rate, 200u);
  for (auto rate : {"0", "1000000001", "x"})
    EXPECT_TRUE(says(refused("execsnoop", {"--max-rate", rate}), "from 1 to 1000000000")) << rate;
  refused("runqlat", {"--max-rate", "200"});
  EXPECT_TRUE(says(refused("extfrag", {"--max-rate", "200"}), "--max-rate needs --events"));
  accepted("extfrag", {"-e", "--max-rate", "200"});
}

TEST(CommandLine, OptionsThatBelongToOthers) {
  EXPECT_TRUE(says(refused("extfrag", {"--raw"}), "--raw needs --events"));
  EXPECT_TRUE(says(refused("extfrag", {"--ring-size", "1M"}), "--ring-size needs --events"));
  EXPECT_TRUE(
      says(refused("extfrag", {"-e", "--top", "3"}), "--top and --events cannot be used together"));
  EXPECT_TRUE(
      says(refused("extfrag", {"-u", "-a"}), "--all and --unusable cannot be used together"));
  EXPECT_TRUE(says(refused("memleak", {"-P", "-p", "1"}),
                   "--percpu and a filter by task cannot be used together"));
  EXPECT_TRUE(says(refused("drsnoop", {"--perf-max-stack-depth", "9"}), "needs --kernel-stack"));
  accepted("extfrag", {"-e", "--raw", "-K", "--ring-size", "1M", "-a"});
  accepted("extfrag", {"-P", "--top", "3", "-o", "2"});
  accepted("memleak", {"-P"});
  for (auto& entry : registry()) {
    auto tool = build(entry);
    for (auto& o : all_options(tool))
      EXPECT_EQ(o.belongs_to.find(o.name), std::string_view::npos) << entry.name << " --" << o.name;
  }
}

TEST(CommandLine, NumbersHaveBounds) {
  EXPECT_TRUE(says(refused("chaintrace", {"-n", "9"}), "--chain: '9' is not a number from 1 to 8"));
  EXPECT_TRUE(says(refused("chaintrace", {"-n", "x"}), "--chain: 'x' is not a number from 1 to 8"));
  EXPECT_TRUE(
      says(refused("traceloop", {"-s", "63"}), "--size: '63' is not a number from 64 to 4194304"));
  EXPECT_TRUE(
      says(refused("memleak", {"-s", "0"}), "--sample-rate: '0' is not a number from 1 to "));
  EXPECT_TRUE(
      says(refused("execsnoop", {"--max-args", "0"}), "--max-args: '0' is not a number from 1"));
  EXPECT_TRUE(says(refused("syscount", {"--ppid", "0"}), "--ppid: '0' is not a number from 1 to "));
  accepted("chaintrace", {"-n", "8"});
}

TEST(CommandLine, ExclusiveOptions) {
  EXPECT_TRUE(says(refused("offcputime", {"-u", "-k"}), "--kernel-threads-only"));
  EXPECT_TRUE(says(refused("offcputime", {"-UK"}), "cannot be used together"));
  EXPECT_TRUE(says(refused("offcputime", {"-f", "--json"}), "--folded"));
  EXPECT_TRUE(says(refused("offcputime", {"-f", "--csv"}), "--folded"));
  EXPECT_TRUE(
      says(refused("extfrag", {"-e", "-i"}), "--events and --index cannot be used together"));
  for (auto& entry : registry()) {
    auto tool = build(entry);
    auto options = all_options(tool);
    for (auto& [one, other] : tool.exclusive)
      for (auto name : {one, other}) {
        bool known = false;
        for (auto& o : options) known |= o.name == name;
        EXPECT_TRUE(known) << entry.name << ": no option --" << name;
      }
  }
}

TEST(CommandLine, FlameGraphs) {
  EXPECT_EQ(accepted("profile", {"--svg", "a.svg"}).svg, "a.svg");
  EXPECT_EQ(accepted("profile", {"--svg=-"}).svg, "-");
  EXPECT_EQ(accepted("profile", {"--svg", "a.svg", "--json"}).format, OutputFormat::json);
  EXPECT_TRUE(says(refused("profile", {"--svg", ""}), "--svg"));
  for (auto* other : {"-f", "--json", "--csv"})
    EXPECT_TRUE(says(refused("profile", {"--svg", "-", other}), "standard output"));
  for (auto& entry : registry()) {
    auto tool = build(entry);
    bool draws = false;
    for (auto& o : all_options(tool)) draws |= o.name == "svg";
    auto has_stacks = [](const Report& report) {
      return report->name() == "stacks" || report->name() == "outstanding";
    };
    EXPECT_EQ(draws, has_stacks(tool.report) ||
                         std::any_of(tool.other_reports.begin(), tool.other_reports.end(),
                                     [&](auto& other) { return has_stacks(other.report); }))
        << entry.name;
  }
}

TEST(CommandLine, ToolsJudgeCombinations) {
  EXPECT_TRUE(says(refused("offcputime", {"-m", "5", "-M", "4"}), "--min-block-time"));
  accepted("offcputime", {"-m", "5", "-M", "5"});
  accepted("offcputime", {"-m", "5"});
}

TEST(CommandLine, NumbersAreScaledAndBounded) {
  auto c = accepted("offcputime", {"-m", "1000"});
  ASSERT_EQ(c.edits().size(), 1u);
  EXPECT_EQ(c.edits()[0].value, 1'000'000u);
  EXPECT_EQ(c.edits()[0].target.size, 8u);
  // 0 is a value that differs from none, and says so in a second variable.
  c = accepted("offcputime", {"--state", "0"});
  ASSERT_EQ(c.edits().size(), 2u);
  EXPECT_EQ(c.edits()[0].value, 0u);
  EXPECT_EQ(c.edits()[1].value, 1u);
  accepted("offcputime", {"-m", "18446744073709551"});
  for (auto* bad : {"18446744073709552", "18446744073709551615", "18446744073709551616", "-1",
                    "1.5", "", "1k", " 1", "1 "})
    EXPECT_TRUE(says(refused("offcputime", {"-m", bad}), "--min-block-time")) << bad;
  EXPECT_TRUE(says(refused("offcputime", {"--state", "4294967296"}), "--state"));
}

// A number that only the loader reads has no place in the kernel program.
TEST(CommandLine, NumberWithoutSetting) {
  auto option = number('n', "lines", "N", "lines", {});
  Config c;
  EXPECT_TRUE(option.apply(c, "5"));
  EXPECT_TRUE(c.edits().empty());
}

TEST(CommandLine, FlagsSetTheirVariable) {
  auto c = accepted("biolatency", {"-D"});
  ASSERT_EQ(c.edits().size(), 1u);
  EXPECT_EQ(c.edits()[0].value, 1u);
  EXPECT_EQ(c.edits()[0].target.size, 1u);
  EXPECT_TRUE(accepted("biolatency", {"-T"}).edits().empty()) << "of no interest to the kernel";
}

TEST(CommandLine, Users) {
  EXPECT_EQ(accepted("runqlat", {"-u", "1000"}).uids, Ids{1000});
  EXPECT_EQ(accepted("runqlat", {"-u", "0"}).uids, Ids{0});
  EXPECT_EQ(accepted("runqlat", {"--uid=root"}).uids, Ids{0});
  for (auto* bad :
       {"", "4294967295", "4294967296", "-1", "no such user", "1:2", "../root", "1,", ",1"})
    EXPECT_TRUE(says(refused("runqlat", {"-u", bad}), "user")) << bad;
}

TEST(CommandLine, CommIsCutAsTheKernelDoes) {
  EXPECT_EQ(accepted("runqlat", {"--comm", "kworker/u16:flush"}).comms, Words{"kworker/u16:flu"});
  for (auto* bad : {"", "a,", ",a", "a,,b"})
    EXPECT_TRUE(says(refused("runqlat", {"--comm", bad}), "--comm")) << bad;
}

TEST(CommandLine, PartsOfNamesAreBounded) {
  EXPECT_EQ(accepted("drsnoop", {"-n", "123456789012345"}).names.size(), 1u);
  EXPECT_TRUE(says(refused("drsnoop", {"-n", "1234567890123456"}), "15 bytes"));
  EXPECT_TRUE(says(refused("drsnoop", {"-n", ""}), "--name"));
  Words many;
  for (int i = 0; i < 4; i++) many.insert(many.end(), {"-n", "123456789012345"});
  EXPECT_EQ(accepted("drsnoop", many).names.size(), 4u);
  many.insert(many.end(), {"-n", "12345"});
  EXPECT_TRUE(says(refused("drsnoop", many), "64 bytes"));
}

TEST(CommandLine, LimitsTakeSuffixes) {
  EXPECT_EQ(accepted("drsnoop", {"--ring-size", "8M"}).ring_bytes, 8u << 20);
  EXPECT_EQ(accepted("drsnoop", {"--ring-size", "1g"}).ring_bytes, 1u << 30);
  EXPECT_EQ(accepted("biolatency", {"--max-keys", "64K"}).max_keys, 65536u);
  for (auto* bad : {"0", "2G", "-1", "", "K", "16777217T", "18446744073709551615G"})
    EXPECT_TRUE(says(refused("drsnoop", {"--ring-size", bad}), "--ring-size")) << bad;
  EXPECT_TRUE(says(refused("biolatency", {"--max-keys", "16777217"}), "--max-keys"));
  EXPECT_EQ(accepted("offcputime", {"--perf-max-stack-depth", "127"}).stack_depth, 127u);
  for (auto* bad : {"0", "128", "x"})
    EXPECT_TRUE(says(refused("offcputime", {"--perf-max-stack-depth", bad}), "127")) << bad;
}

TEST(CommandLine, OtherToolsOptionsAreUnknown) {
  EXPECT_TRUE(says(refused("biolatency", {"--ring-size", "1M"}), "--ring-size"));
  EXPECT_TRUE(says(refused("drsnoop", {"-i", "1"}), "-i"));
}

TEST(CommandLine, UnknownDisk) {
  EXPECT_TRUE(says(refused("biolatency", {"-d", "no such disk"}), "no such disk"));
}

TEST(CommandLine, LettersMeanOneThing) {
  for (auto& entry : registry()) {
    auto tool = build(entry);
    std::string letters;
    std::vector<std::string_view> names;
    for (auto& o : all_options(tool)) {
      if (o.letter) {
        EXPECT_EQ(letters.find(o.letter), std::string::npos) << entry.name << " -" << o.letter;
        letters += o.letter;
      }
      EXPECT_EQ(std::count(names.begin(), names.end(), o.name), 0) << entry.name << " --" << o.name;
      names.push_back(o.name);
    }
  }
}

TEST(ParseUnsigned, WholeTextOrNothing) {
  EXPECT_EQ(parse_unsigned("0"), 0u);
  EXPECT_EQ(parse_unsigned("007"), 7u);
  EXPECT_EQ(parse_unsigned("18446744073709551615"), UINT64_MAX);
  using namespace std::string_view_literals;
  for (auto bad : {""sv, " "sv, " 1"sv, "1 "sv, "-1"sv, "+1"sv, "1.0"sv, "1e3"sv, "0x1"sv, "1\0"sv,
                   "\0001"sv, "18446744073709551616"sv, "\xd9\xa1"sv, "1,000"sv})
    EXPECT_FALSE(parse_unsigned(bad)) << bad;
  EXPECT_FALSE(parse_unsigned(std::string(100000, '9')));
}

TEST(ParseSeconds, Units) {
  EXPECT_EQ(parse_seconds("2"), 2);
  EXPECT_EQ(parse_seconds("0.5"), 0.5);
  EXPECT_EQ(parse_seconds("100ms"), 0.1);
  EXPECT_EQ(parse_seconds("3s"), 3);
  EXPECT_EQ(parse_seconds("2m"), 120);
  EXPECT_EQ(parse_seconds("1.5h"), 5400);
  EXPECT_EQ(parse_seconds("0"), 0);
  using namespace std::string_view_literals;
  for (auto bad : {""sv,      "s"sv,     "ms"sv,  " 1"sv,    "1 s"sv, "1S"sv,   "-1"sv,
                   "+1"sv,    "1d"sv,    "1us"sv, "nan"sv,   "inf"sv, "-inf"sv, "infinity"sv,
                   "1e999"sv, "0x1p3"sv, "1,5"sv, "1.2.3"sv, "1\0"sv, "1m "sv})
    EXPECT_FALSE(parse_seconds(bad)) << bad;
  auto huge = parse_seconds("1e308h");
  EXPECT_TRUE(!huge || std::isfinite(*huge)) << "a time, or none";
}

TEST(ParseSize, Suffixes) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("64K"), 65536u);
  EXPECT_EQ(parse_size("64k"), 65536u);
  EXPECT_EQ(parse_size("8M"), 8u << 20);
  EXPECT_EQ(parse_size("3g"), 3ull << 30);
  EXPECT_EQ(parse_size("17179869183G"), 17179869183ull << 30);
  for (auto* bad : {"", "K", "M", "1KK", "1 K", "1.5M", "-1K", "1T", "1B", "17179869184G",
                    "18014398509481984K", "18446744073709551616", "0x10K"})
    EXPECT_FALSE(parse_size(bad)) << bad;
}

TEST(ConfigConditions, OptionsAndNegation) {
  Config c;
  c.give("json", "");
  EXPECT_TRUE(c.holds(""));
  EXPECT_TRUE(c.holds("json"));
  EXPECT_FALSE(c.holds("!json"));
  EXPECT_FALSE(c.holds("csv"));
  EXPECT_TRUE(c.holds("!csv"));
  EXPECT_TRUE(c.holds("csv|json"));
  EXPECT_TRUE(c.holds("json|csv"));
  EXPECT_FALSE(c.holds("csv|strict"));
  EXPECT_FALSE(c.holds("jso"));
}

TEST(ConfigConditions, TaskFilter) {
  EXPECT_FALSE(Config().holds("task-filter"));
  EXPECT_TRUE(Config().holds("!task-filter"));
  for (auto& words : {Words{"-p1"},
                      {"-t1"},
                      {"-u0"},
                      {"--comm", "x"},
                      {"-c", "1"},
                      {"--", "true"},
                      {"--not-pid", "1"},
                      {"--not-comm", "x"}}) {
    auto c = accepted("biolatency", words);
    EXPECT_TRUE(c.holds("task-filter")) << words[0];
    EXPECT_TRUE(c.holds("queued|task-filter")) << words[0];
    EXPECT_FALSE(c.holds("!task-filter")) << words[0];
  }
  EXPECT_FALSE(accepted("biolatency", {"-D", "-T", "1"}).filters_tasks());
}

// A condition that names no option would silently never hold.
TEST(ConfigConditions, OfAllToolsNameTheirOptions) {
  for (auto& entry : registry()) {
    auto tool = build(entry);
    auto options = all_options(tool);
    auto check = [&](std::string_view condition) {
      if (condition.starts_with('!')) condition.remove_prefix(1);
      while (!condition.empty()) {
        auto word = condition.substr(0, condition.find('|'));
        condition.remove_prefix(std::min(condition.size(), word.size() + 1));
        bool known = word == "task-filter";
        for (auto& o : options) known |= o.name == word;
        EXPECT_TRUE(known) << entry.name << ": " << word;
      }
    };
    for (auto& hook : tool.hooks) check(hook.when);
    std::vector<Report> reports{tool.report};
    for (auto& other : tool.other_reports) reports.push_back(other.report);
    for (auto& report : reports) {
      for (auto& f : report->fields()) check(f.shown_with), check(f.only_with);
      for (auto condition : report->conditions()) check(condition);
    }
  }
}

TEST(OwnSettings, AreOneValueThatIsCopiedToo) {
  struct Settings {
    int number = 7;
  };
  Config c;
  EXPECT_EQ(std::as_const(c).own<Settings>().number, 7) << "no option has said anything";
  c.own<Settings>().number = 8;
  c.own<Settings>().number++;
  auto copy = c;
  c.own<Settings>().number = 0;
  EXPECT_EQ(std::as_const(copy).own<Settings>().number, 9);
}

TEST(HeatMaps, TheFileMayBeLeftOut) {
  auto text = accepted("biolatency", {"--heatmap", "2", "5"});
  EXPECT_EQ(text.heatmap, "");
  EXPECT_EQ(text.interval, 2);
  EXPECT_EQ(text.count, 5u);
  for (auto& words : std::vector<std::vector<std::string>>{
           {"--heatmap", "a.svg", "3"}, {"--heatmap=a.svg", "3"}, {"3", "--heatmap", "a.svg"}}) {
    auto file = accepted("biolatency", words);
    EXPECT_EQ(file.heatmap, "a.svg");
    EXPECT_EQ(file.interval, 3);
  }
  EXPECT_EQ(accepted("biolatency", {"--heatmap"}).interval, 1) << "lines need one";
  EXPECT_EQ(accepted("biolatency", {"--heatmap=-"}).heatmap, "-");
  EXPECT_TRUE(says(refused("biolatency", {"--heatmap", "--json"}), "is for text"));
  EXPECT_TRUE(says(refused("biolatency", {"--heatmap=-", "--json"}), "one thing only"));
  EXPECT_TRUE(says(refused("opensnoop", {"--heatmap"}), "unknown option"));
  EXPECT_TRUE(says(refused("hardirqs", {"--heatmap"}), "--heatmap needs --distributed"));
}

TEST(Flows, PortsAndVersions) {
  auto c = accepted("tcplife", {"-L", "80,443", "-L", "8080", "-D", "65535", "-6", "-6"});
  EXPECT_EQ(c.local_ports, (Ids{80, 443, 8080}));
  EXPECT_EQ(c.remote_ports, (Ids{65535}));
  EXPECT_EQ(c.ip, 6u);
  EXPECT_EQ(accepted("tcplife", {}).ip, 0u);
  for (auto* bad : {"0", "65536", "80,", "http", "-1", ""})
    EXPECT_TRUE(says(refused("tcplife", {"-L", bad}), "is not a list of ports or ranges")) << bad;
  auto ranges = accepted("tcplife", {"-L", "22,8000-8002", "-D", "65534-65535"});
  EXPECT_EQ(ranges.local_ports, (Ids{22, 8000, 8001, 8002}));
  EXPECT_EQ(ranges.remote_ports, (Ids{65534, 65535}));
  for (auto* bad : {"5-4", "0-4", "1-65536", "1-", "-", "1-2-3"})
    EXPECT_TRUE(says(refused("tcplife", {"-L", bad}), "is not a list of ports or ranges")) << bad;
  EXPECT_TRUE(says(refused("tcplife", {"-4", "-6"}), "used together"));
}

TEST(Reports, AreChosenByAnOption) {
  auto tool = build(*find_tool("tcpretrans"));
  EXPECT_EQ(chosen_report(tool, accepted("tcpretrans", {}))->name(), "event");
  EXPECT_EQ(chosen_report(tool, accepted("tcpretrans", {"-c"}))->name(), "aggregate");
}

}  // namespace
}  // namespace coretap
