// blockedby against programs that know the owner of a lock while they waited for it.
#include <fmt/format.h>

#include "shared.hpp"

namespace coretap::tooltest {
namespace {

using Pairs = std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t>;  // waiter, owner

Pairs pairs_of(const Json& truth) {
  Pairs all;
  for (auto& pair : truth["pairs"].items())
    all[{pair["waiter"].u64(), pair["owner"].u64()}] += pair["ns"].u64();
  return all;
}

/// The time that each owner held up each waiter, for this kind of object.
Pairs pairs_of(const Report& report, const std::string& object) {
  Pairs all;
  for (auto& line : report.body) {
    auto owners = line["owners"].items();
    if (line["object"].is_null() || line["object"].str() != object || owners.empty()) continue;
    if (owners[0]["by"].str() != "owner" || owners[0]["tid"].is_null()) continue;
    all[{line["tid"].u64(), owners[0]["tid"].u64()}] += line["total_ns"].u64();
  }
  return all;
}

std::uint64_t total(const Pairs& pairs) {
  std::uint64_t ns = 0;
  for (auto& [who, time] : pairs) ns += time;
  return ns;
}

/// Of the time that the workload knows an owner for, the tool has the right one for 95 %.
void expect_owners(const Observed& seen, const std::string& object) {
  auto truth = pairs_of(seen.truth), shown = pairs_of(seen.report(), object);
  std::uint64_t right = 0;
  for (auto& [who, ns] : truth) right += std::min(ns, shown[who]);
  EXPECT_GE(right, total(truth) * 95 / 100);
}

std::string object_of(const std::string& lock) {
  static const std::map<std::string, std::string> kNames = {
      {"mutex", "futex-mutex"}, {"pi", "futex-pi"}, {"robust", "futex-tid"}, {"flock", "flock"},
      {"fcntl", "fcntl"},       {"ofd", "ofd"},     {"pipe", "mutex"},       {"file", "rwsem:W"}};
  return kNames.at(lock);
}

/// The program's time of a wait includes that in the queue for a CPU, which is long in a slow
/// guest: there locks are held for longer.
Observed watch_holders(const std::string& lock, int members, const std::string& more = "",
                       int rounds = 6) {
  const auto ms = static_cast<int>(10 * std::clamp(slowness(), 1.0, 4.0));
  return observe("blockedby --json --comm holders",
                 fmt::format("holders --rounds {} --ms {} --lock {} --members {}{}", rounds, ms,
                             lock, members, more));
}

TOOL_SUITE(BlockedbyThreads, ("mutex pi robust flock ofd pipe file"));
TOOL_TEST_P(BlockedbyThreads, OwnersAreRight, lock) {
  require_tool("blockedby");
  for (int members : {2, 4, 8}) {
    SCOPED_TRACE(members);
    expect_owners(watch_holders(lock, members), object_of(lock));
  }
}

TOOL_SUITE(BlockedbyProcesses, ("mutex flock fcntl"));
TOOL_TEST_P(BlockedbyProcesses, OwnersAreRight, lock) {
  require_tool("blockedby");
  for (int members : {2, 4, 8}) {
    SCOPED_TRACE(members);
    expect_owners(watch_holders(lock, members, " --processes"), object_of(lock));
  }
}

TOOL_TEST(Blockedby, StacksOfBoth) {
  require_tool("blockedby");
  auto seen = watch_holders("mutex", 2, "", 40);
  auto lines = lines_with(seen.report().body, {{"object", "futex-mutex"}});
  ASSERT_FALSE(lines.empty());
  std::uint64_t all = 0, asleep = 0;
  std::size_t whole = 0;
  for (auto& line : lines) {
    auto complete = [](const Json& of) { return of["user_stack_truncated"].is_null(); };
    // The first stacks of a process end where its files are not read yet.
    if (!complete(line) || !complete(line["owners"].items().at(0))) continue;
    whole++;
    EXPECT_TRUE(has_frame(line, "user_stack", "holders_wait"));
    EXPECT_EQ(line["reason"].str(), "futex");
    EXPECT_EQ(line["object_address"].u64(), seen.ready["address"].u64());
    auto owner = line["owners"].items().at(0);
    all += line["total_ns"].u64();
    if (owner["reason"].is_null() || owner["reason"].str() != "sleep") continue;
    asleep += line["total_ns"].u64();
    EXPECT_TRUE(has_frame(owner, "user_stack", "holders_hold"));
  }
  EXPECT_GT(whole, 0u);
  EXPECT_GE(asleep, all * 9 / 10) << "the owners sleep while they hold it";
}

TOOL_TEST(Blockedby, ChainsToTheEnd) {
  require_tool("blockedby");
  auto seen =
      observe("blockedby --json -K --comm holders", "holders --lock chain --members 5 --ms 200");
  auto tids = seen.truth["tids"].items();
  auto lines =
      lines_with(seen.report().body, {{"object", "futex-mutex"}, {"tid", tids.at(0).u64()}});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_GE(lines[0]["total_ns"].u64(), 190'000'000u);
  auto owners = lines[0]["owners"].items();
  ASSERT_GE(owners.size(), 4u);
  for (std::size_t i = 0; i < 4; i++) {
    EXPECT_EQ(owners[i]["tid"].u64(), tids.at(i + 1).u64());
    EXPECT_EQ(owners[i]["by"].str(), "owner");
    EXPECT_EQ(owners[i]["reason"].str(), i == 3 ? "sleep" : "futex");
  }
}

/// A deadlock of two threads; their thread ids.
struct Hang {
  Workload workload{"mutexes", "--order hang", kLinger};
  std::set<std::uint64_t> tids;
  void begin() {
    workload.release();
    for (auto& tid : workload.truth()["tids"].items())
      if (tid.u64()) tids.insert(tid.u64());
  }
};

TOOL_TEST(Blockedby, CycleThatStillWaits) {
  require_tool("blockedby");
  Hang hang;
  Tracer tracer("blockedby", {"--json", "-p", hang.workload.id()});
  hang.begin();
  auto report = tracer.stop();
  std::set<std::uint64_t> shown;
  for (auto& line : lines_with(report.body, {{"object", "futex-mutex"}, {"still_waiting", true}})) {
    shown.insert(line["tid"].u64());
    auto owners = line["owners"].items();
    ASSERT_EQ(owners.size(), 2u);
    EXPECT_NE(owners[0]["tid"].u64(), line["tid"].u64());
    EXPECT_FALSE(owners[0]["cycle"].boolean());
    EXPECT_EQ(owners[1]["tid"].u64(), line["tid"].u64());
    EXPECT_TRUE(owners[1]["cycle"].boolean());
  }
  EXPECT_EQ(shown, hang.tids);
}

TOOL_TEST(Blockedby, NowShowsADeadlock) {
  require_tool("blockedby");
  Hang hang;
  hang.begin();
  auto report = report_of("blockedby --now --json -p " + hang.workload.id());
  auto lines = lines_with(report.body, {{"object", "futex-mutex"}});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0]["cycle"].boolean());
  EXPECT_FALSE(lines[1]["cycle"].boolean());
  EXPECT_EQ(lines[1]["depth"].u64(), 1u);
  EXPECT_EQ(lines[0]["owner_tid"].u64(), lines[1]["tid"].u64());
  EXPECT_EQ(lines[1]["owner_tid"].u64(), lines[0]["tid"].u64());
  auto text = output_of("blockedby --now -p " + hang.workload.id());
  expect_contains(text, {"a deadlock"});
}

TOOL_SUITE(BlockedbyNow, ("mutex pi flock fcntl pipe file"));
TOOL_TEST_P(BlockedbyNow, HolderIsTheRoot, lock) {
  require_tool("blockedby");
  const bool processes = lock == "fcntl" || lock == "flock";
  Workload workload(
      "holders",
      "--members 3 --rounds 1 --ms 3000 --lock " + lock + (processes ? " --processes" : ""),
      kLinger);
  workload.release();
  std::vector<Json> lines;
  // All three have begun, and the first one still holds it.
  ASSERT_TRUE(until([&] {
    lines = report_of("blockedby --now --json --comm holders").body;
    return lines_with(lines, {{"object", object_of(lock)}}).size() >= 2 ||
           (lock == "pipe" || lock == "file" ? lines_with(lines, {{"state", "D"}}).size() >= 2
                                             : false);
  }));
  auto waiters = lines_with(lines, {{"object", object_of(lock)}});
  auto truth = workload.truth();
  if (waiters.empty()) {
    for (auto& line : lines_with(lines, {{"state", "D"}}))
      EXPECT_FALSE(line["owner_unknown"].is_null());
    throw Skip("this kernel does not keep which lock a task waits for");
  }
  // The first owner never waited.
  std::set<std::uint64_t> owners, late;
  for (auto& [who, ns] : pairs_of(truth)) {
    owners.insert(who.second);
    late.insert(who.first);
  }
  for (auto tid : late) owners.erase(tid);
  ASSERT_EQ(owners.size(), 1u);
  ASSERT_EQ(waiters.size(), 2u);
  std::size_t unknown = 0;
  for (auto& line : waiters) {
    // The waiters of a file lock form a chain, of which /proc/locks of 5.10 has the first only.
    if (processes && line["owner_tid"].is_null()) {
      EXPECT_FALSE(line["owner_unknown"].is_null());
      unknown++;
      continue;
    }
    EXPECT_EQ(line["owner_tid"].u64(), *owners.begin());
    EXPECT_TRUE(late.contains(line["tid"].u64()));
    EXPECT_EQ(line["depth"].u64(), 1u);
  }
  EXPECT_LT(unknown, waiters.size());
  auto root = line_with(lines, {{"tid", *owners.begin()}});
  EXPECT_EQ(root["depth"].u64(), 0u);
  EXPECT_TRUE(root["object"].is_null());
}

TOOL_TEST(Blockedby, OnlyTheWakerOfAPipe) {
  require_tool("blockedby");
  auto seen =
      observe("blockedby --json -K -p {pid}", "sleeper --ms 10 --block-on pipe --sleeps 10");
  auto thread = seen.truth["threads"].items().at(0);
  auto lines =
      lines_with(seen.report().body, {{"reason", "pipe_read"}, {"tid", thread["tid"].u64()}});
  ASSERT_FALSE(lines.empty());
  for (auto& line : lines) {
    EXPECT_TRUE(line["object"].is_null());
    auto owner = line["owners"].items().at(0);
    EXPECT_EQ(owner["by"].str(), "waker");
    EXPECT_EQ(owner["tid"].i64(), thread["waker_tid"].i64());
  }
}

TOOL_TEST(Blockedby, PartsOfTheStacks) {
  require_tool("blockedby");
  for (auto& line :
       observe("blockedby -K --json --comm holders", "holders --rounds 2").report().body)
    EXPECT_TRUE(line["user_stack"].strings().empty());
  for (auto& line :
       observe("blockedby -U --json --comm holders", "holders --rounds 2").report().body)
    EXPECT_TRUE(line["kernel_stack"].strings().empty());
}

TOOL_TEST(Blockedby, WrongOptions) {
  expect_refused("blockedby -K -U");
  expect_refused("blockedby --min-block-time 10 --max-block-time 5");
  expect_refused("blockedby --now -- true");
}

/// A wait whose stack has no room is shown without it; one whose row has none is lost.
stress::Row waits() {
  auto row = stack_row(stress::sleeps(), 3000, stress::waits, "--all --state 3");
  row.tiny = "--max-keys 1";
  return row;
}

TESTS_OF(blockedby, .reports = {{ReportKind::stacks}},
         .events = {.command = "sleeper --block-on pipe --sleeps 3"}, .stress = waits(),
         .long_run = {{.arguments = "-m 1000", .holds_results = true}});

}  // namespace
}  // namespace coretap::tooltest
