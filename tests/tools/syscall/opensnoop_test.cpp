// opensnoop against a program that knows of each of its opens what came of it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

bool is_null(const Json& event, const char* key) { return event[key].is_null(); }

struct Scene {
  Workload workload{"opener", {"--scene", "--count", "20"}};
  std::string pid = workload.id();
  std::unique_ptr<Tracer> with(Strings options) const {
    options.insert(options.begin(), {"--json", "--strict", "-p", pid});
    return std::make_unique<Tracer>("opensnoop", options);
  }
};

/// What one call of the scene is known to be; `whole`: with --full-path.
void expect_call(const Json& event, const Json& truth, bool whole) {
  EXPECT_EQ(event["call"].str(), truth["call"].str());
  EXPECT_EQ(event["fd"].i64(), truth["fd"].i64());
  if (auto error = static_cast<int>(truth["error"].i64()))
    EXPECT_EQ(event["error"].str(), ::strerrorname_np(error));
  else
    EXPECT_TRUE(is_null(event, "error"));
  EXPECT_EQ(event["open_flags"].u64(), truth["flags"].u64());
  if (truth["mode"].u64())
    EXPECT_EQ(event["open_mode"].u64(), truth["mode"].u64());
  else
    EXPECT_TRUE(is_null(event, "open_mode"));
  EXPECT_GT(event["latency_ns"].u64(), 0u);
  auto given = unhex(truth["given_hex"].str()), full = unhex(truth["full_hex"].str());
  if (given == "?") {
    EXPECT_TRUE(is_null(event, "path"));
    return;
  }
  if (given.size() > 4095) {
    EXPECT_TRUE(event["incomplete"].boolean());
    EXPECT_EQ(event["argument"].str(), given.substr(0, 4095) + "...");
    EXPECT_EQ(event["path"].str(), whole ? full.substr(0, full.size() - given.size() + 4095) + "..."
                                         : event["argument"].str());
    return;
  }
  EXPECT_FALSE(event["incomplete"].boolean());
  EXPECT_EQ(event["argument"].str(), in_json(given));
  EXPECT_EQ(event["path"].str(), in_json(whole ? full : given));
}

TOOL_TEST(Opensnoop, EveryCallWithItsResult) {
  require_tool("opensnoop");
  Scene scene;
  auto given = std::make_unique<Tracer>("opensnoop", Strings{"--json", "-p", scene.pid});
  auto full = std::make_unique<Tracer>("opensnoop", Strings{"--json", "-F", "-p", scene.pid});
  auto failed = std::make_unique<Tracer>("opensnoop", Strings{"--json", "-x", "-p", scene.pid});
  auto writers = scene.with({"-f", "O_WRONLY", "-f", "O_EXCL"});
  auto text =
      std::make_unique<Tracer>("opensnoop", Strings{"-T", "-U", "-e", "-L", "-n", "opener"});
  scene.workload.release();
  auto truth = scene.workload.truth();
  auto calls = truth["scene"].items();
  auto bulk = truth["bulk"].u64(), pid = truth["pid"].u64();
  ASSERT_EQ(calls.size(), truth["scene_opens"].u64());
  for (auto* tracer : {given.get(), full.get()}) {
    bool whole = tracer == full.get();
    auto report = tracer->stop();
    EXPECT_EQ(report.lost("lost"), 0u);
    auto events = report.of_process(pid);
    ASSERT_EQ(events.size(), bulk + calls.size());
    for (std::uint64_t i = 0; i < bulk; i++)
      EXPECT_EQ(events[i]["path"].str(),
                whole ? "/proc/" + scene.pid + "/comm" : "/proc/self/comm");
    for (std::size_t i = 0; i < calls.size(); i++) {
      SCOPED_TRACE(i);
      expect_call(events[bulk + i], calls[i], whole);
    }
    // The path that is too long for the kernel too is shortened, and that is reported.
    EXPECT_EQ(report.lost("truncated"), 1u);
  }
  auto failures = failed->stop();
  EXPECT_EQ(failures.body.size(), truth["failures"].u64());
  for (auto& event : failures.body) EXPECT_FALSE(is_null(event, "error"));
  std::size_t writes = 0;
  for (auto& call : calls)
    writes += (call["flags"].u64() & O_ACCMODE) == O_WRONLY || call["flags"].u64() & O_EXCL;
  EXPECT_EQ(writers->stop().body.size(), writes);

  auto shown = text->stop_text();
  EXPECT_TRUE(safe_for_terminals(shown));
  std::istringstream lines(shown);
  std::string line;
  std::getline(lines, line);
  std::istringstream title(line);
  Strings titles;
  for (std::string word; title >> word;) titles.push_back(word);
  EXPECT_EQ(titles, (Strings{"TIME(s)", "UID", "PID", "COMM", "FD", "ERR", "FLAGS", "MODE",
                             "LAT(us)", "PATH"}));
  EXPECT_TRUE(contains(shown, "\\x1b]0;x\\x07\\x0a\"\\\\xff\\xc3(, end\n"));
  EXPECT_TRUE(contains(shown, " 00001101 0604 "));
}

// A long row without a pause: all of it arrives.
TOOL_TEST(Opensnoop, LosesNothingInAStorm) {
  require_tool("opensnoop");
  const std::uint64_t count = slowness() > 3 ? 20000 : 100000;
  Workload workload("opener", {"--count", std::to_string(count)});
  Tracer tracer("opensnoop", {"--strict", "-p", workload.id()}, {.stdout_path = "/dev/null"});
  Tracer other("opensnoop", {"--json", "--strict", "-f", "O_TMPFILE", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto err = [&] {
    tracer.process().signal(2);
    EXPECT_EQ(tracer.process().wait(), 0) << tracer.process().err();
    return tracer.process().err();
  }();
  EXPECT_TRUE(contains(err, std::to_string(count) + " shown")) << err;
  auto report = other.stop();
  EXPECT_TRUE(report.body.empty());
  EXPECT_GE(report.lost("filtered"), count);
}

TOOL_TEST(Opensnoop, Filters) {
  require_tool("opensnoop");
  Workload wanted("opener", {"--count", "7"}),
      other("opener", {"--comm", "op-other", "--count", "3"});
  auto with = [](Strings options) {
    options.insert(options.begin(), {"--json", "--strict"});
    return std::make_unique<Tracer>("opensnoop", options);
  };
  auto by_pid = with({"-p", wanted.id()}), by_tid = with({"-t", wanted.id()});
  auto by_name = with({"-n", "opener"}), both = with({"-p", wanted.id() + "," + other.id()});
  auto nobody = with({"-u", "54321"});
  // Parts of names, whole names, lists and repetition.
  std::pair<Strings, std::size_t> lists[] = {
      {{"-n", "pene"}, 7},
      {{"-n", "p-oth"}, 3},
      {{"-n", "p-othx"}, 0},
      {{"-n", "opener", "--name", "-other"}, 10},
      {{"--comm", "pene"}, 0},
      {{"--comm", "op-other"}, 3},
      {{"--comm", "op-other,opener"}, 10},
      {{"--comm", "opener", "--comm", "op-other"}, 10},
      {{"--comm", "op-other,opener", "-n", "pen"}, 7},
      {{"-n", "o", "--not-pid", wanted.id()}, 3},
      {{"-n", "o", "--not-pid", wanted.id() + "," + other.id()}, 0},
      {{"-p", wanted.id() + "," + other.id(), "--not-comm", "op-other"}, 7},
      {{"-p", wanted.id() + "," + other.id(), "--not-comm", "opener,op-other"}, 0},
      {{"-u", "54321,54322"}, 0},
      {{"-u", "54321", "-u", std::to_string(::getuid()), "--comm", "op-other"}, 3}};
  std::vector<std::unique_ptr<Tracer>> by_list;
  for (auto& [options, expected] : lists) by_list.push_back(with(options));
  wanted.release();
  other.release();
  wanted.truth();
  other.truth();
  for (std::size_t i = 0; i < std::size(lists); i++) {
    auto report = by_list[i]->stop();
    auto shown = report.of_process(static_cast<std::uint64_t>(wanted.pid())).size() +
                 report.of_process(static_cast<std::uint64_t>(other.pid())).size();
    EXPECT_EQ(shown, lists[i].second) << ::testing::PrintToString(lists[i].first);
  }
  EXPECT_EQ(by_pid->stop().body.size(), 7u);
  EXPECT_EQ(by_tid->stop().body.size(), 7u);
  EXPECT_EQ(by_name->stop().of_process(static_cast<std::uint64_t>(wanted.pid())).size(), 7u);
  EXPECT_EQ(both->stop().body.size(), 10u);
  EXPECT_TRUE(nobody->stop().body.empty());
}

// A cgroup as a runtime would make it; its name is not known, as no runtime runs here.
TOOL_TEST(Opensnoop, ContainersAndUnits) {
  require_tool("opensnoop");
  const std::string id(64, 'a');
  Cgroup container, unit("-test.service");
  auto scope = container.path() + "/docker-" + id + ".scope";
  ASSERT_EQ(::mkdir(scope.c_str(), 0755), 0);
  Workload inside("opener", {"--count", "5"}), served("opener", {"--count", "3"});
  std::ofstream(scope + "/cgroup.procs") << inside.id() << std::flush;
  unit.add(served.pid());
  Tracer all("opensnoop", {"--json", "--strict", "-p", inside.id() + "," + served.id()});
  Tracer by_id("opensnoop", {"--json", "--strict", "--container", id.substr(0, 12)});
  Tracer text("opensnoop", {"--containers", "-p", served.id()});
  inside.release();
  served.release();
  inside.truth();
  served.truth();
  auto report = all.stop();
  for (auto& line : report.of_process(static_cast<std::uint64_t>(inside.pid()))) {
    EXPECT_EQ(line["container_id"].str(), id);
    EXPECT_TRUE(line["container"].is_null());
    EXPECT_TRUE(line["unit"].is_null());
    EXPECT_TRUE(line["cgroup"].str().ends_with("/docker-" + id + ".scope"));
  }
  for (auto& line : report.of_process(static_cast<std::uint64_t>(served.pid()))) {
    EXPECT_TRUE(line["unit"].str().ends_with("-test.service"));
    EXPECT_TRUE(line["container_id"].is_null());
  }
  EXPECT_EQ(report.body.size(), 8u);
  EXPECT_EQ(by_id.stop().body.size(), 5u);
  EXPECT_TRUE(contains(text.stop_text(), "-test.service"));
  auto none = run({tool_path("opensnoop"), "--container", "no-such"});
  EXPECT_EQ(none.status, 2);
  EXPECT_TRUE(contains(none.err, "--container no-such: there is none here")) << none.err;
  ::rmdir(scope.c_str());
}

TOOL_TEST(Opensnoop, RefusesUnknownFlags) {
  auto result = run({tool_path("opensnoop"), "-f", "O_NOSUCH\x1b"});
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(contains(result.err, "hint: ")) << result.err;
  EXPECT_TRUE(safe_for_terminals(result.err));
}

// The workload's calls come from its main(), through syscall(), which keeps no frame pointer.
TOOL_TEST(Opensnoop, Callers) {
  require_tool("opensnoop");
  Workload workload("opener", {"--count", "20"});
  Tracer tracer("opensnoop", {"--json", "--callers", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  std::uint64_t cut = 0;
  for (auto& event : report.body) {
    EXPECT_FALSE(event["user_stack"].strings().empty());
    cut += !event["user_stack_truncated"].is_null();
  }
  EXPECT_GE(report.body.size(), truth["bulk"].u64());
  EXPECT_EQ(report.lost("stacks_truncated"), cut);
  EXPECT_EQ(report.lost("stacks_failed"), 0u);
  auto text = run({tool_path("opensnoop"), "--callers", "--", "cat", "/dev/null"});
  EXPECT_TRUE(contains(text.out, "\n        ")) << text.out;
#ifdef __x86_64__
  // The files of a command are read before it starts: all its stacks are whole, with names.
  EXPECT_TRUE(contains(text.out, "        __libc_start_main")) << text.out;
  EXPECT_FALSE(contains(text.out, "[truncated: ")) << text.out;
#endif
}

const DeclareTests kOpensnoop{{
    .name = "opensnoop",
    .events = {"-e -F -U", "opener --count 3"},
    .stress = {.workload = "opener --count {n}",
               .events = 20000,
               .truth = "bulk",
               .tiny = "--ring-size 4096",
               .copies = 8},
}};

}  // namespace
}  // namespace coretap::tooltest
