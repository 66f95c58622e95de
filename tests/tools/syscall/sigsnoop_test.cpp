// sigsnoop against a program that sends signals to its child and knows each call's result.
#include <fmt/format.h>

#include "calls.hpp"

namespace coretap::tooltest {
namespace {

std::string name_of_signal(int number) {
  return number < SIGRTMIN ? fmt::format("SIG{}", ::sigabbrev_np(number))
                           : fmt::format("SIGRTMIN+{}", number - SIGRTMIN);
}

/// The kernel's handling of a signal that the scene sends.
std::string outcome_of(int signal, int before) {
  if (signal == SIGURG) return "ignored";
  return signal == SIGTTIN && before == SIGTTIN ? "pending" : "delivered";
}

const char* si_code_of(const std::string& call) {
  if (contains(call, "queue")) return "SI_QUEUE";
  return contains(call, "tkill") || contains(call, "tgkill") ? "SI_TKILL" : "SI_USER";
}

TOOL_TEST(Sigsnoop, CallsAndSignals) {
  const auto list = fmt::format("USR1,SIGUSR2,rtmin+3,{},ttin,9", SIGURG);
  Scene workload("signals", {});
  workload.trace("sigsnoop --json --strict -k -p {pid}");
  workload.trace("sigsnoop --json --strict -p {pid} -s " + list);
  workload.trace("sigsnoop --json -x -T {child} -p {pid}");
  Tracer kills("coretap", "killsnoop -n -x -p " + workload.workload().id());
  auto seen = workload.finish();
  auto calls = seen.report(0).body, sent = seen.report(1).body;
  auto scene = seen.truth["scene"].items();
  auto child = seen.ready["child"].u64();
  struct stat own {};
  ASSERT_EQ(::stat("/proc/self/ns/pid", &own), 0);
  ASSERT_EQ(calls.size(), scene.size());
  std::size_t next = 0;
  int before = 0;
  for (std::size_t i = 0; i < scene.size(); i++) {
    SCOPED_TRACE(i);
    auto &event = calls[i], &call = scene[i];
    auto number = static_cast<int>(call["signal"].i64());
    auto ret = call["ret"].i64();
    expect_same(event, call, {"call", {"signal_number", "signal"}, {"target_pid", "to"}});
    expect_fields(
        event, {{"pid", seen.pid}, {"comm", "signals"}, {"error", error_name(ret < 0 ? -ret : 0)}});
    if (ret < 0 || !number) {
      expect_fields(event, {{"outcome", nullptr}, {"target_comm", nullptr}, {"receivers", 0}});
      continue;
    }
    ASSERT_LT(next, sent.size());
    auto& signal = sent[next++];
    EXPECT_TRUE(signal["call"].is_null());
    for (auto* of : {&event, &signal})
      expect_fields(
          *of, fmt::format("target_comm signals target_uid 0 receivers 1 from_kernel false "
                           "target_pid {0} target_tid {0} pidns {1} target_pidns {1} "
                           "signal_name {2} outcome {3} si_code {4}",
                           child, own.st_ino, name_of_signal(number), outcome_of(number, before),
                           si_code_of(call["call"].str())));
    before = number;
  }
  EXPECT_EQ(next, sent.size());
  auto bad = seen.report(2).body;
  ASSERT_EQ(bad.size(), 2u);
  EXPECT_EQ(bad[0]["outcome"].str(), "ignored");
  EXPECT_EQ(bad[1]["outcome"].str(), "pending");
  expect_contains(kills.stop_text(), {" SIGTERM ", " ESRCH        -", "EINVAL", "EPERM"});
}

// A call for a process group: each of its members is a receiver.
TOOL_TEST(Sigsnoop, EachReceiverOfAGroup) {
  require_tool("sigsnoop");
  Process group(Spawn{.argv = {"sh", "-c", "sleep 1000 & sleep 1000 & exec sleep 1000"}});
  Strings members;
  ASSERT_TRUE(until([&] {
    members = lines(run({"pgrep", "-x", "-g", std::to_string(group.pid()), "sleep"}).out);
    return members.size() == 3;
  }));
  std::vector<std::unique_ptr<Tracer>> tracers;
  for (auto& member : members)
    tracers.push_back(std::make_unique<Tracer>("sigsnoop", "-k --json -s USR1,WINCH -T " + member));
  EXPECT_EQ(::kill(-group.pid(), SIGWINCH), 0);
  for (std::size_t i = 0; i < members.size(); i++) {
    SCOPED_TRACE(members[i]);
    auto event = only(tracers[i]->stop().body);
    expect_fields(event, {{"receivers", 3u}, {"target_comm", "sleep"}});
    EXPECT_EQ(std::to_string(event["target_tid"].i64()), members[i]);
  }
  ::kill(-group.pid(), SIGKILL);
}

// In its namespace, 1 is another process.
TOOL_TEST(Sigsnoop, NumbersOfOtherNamespaces) {
  require_tool("sigsnoop");
  auto seen = run({tool_path("sigsnoop"), "-k", "--json", "-T", "1", "--", "unshare", "-fp",
                   "/bin/sh", "-c", "kill -0 1; kill -WINCH 1; true"});
  EXPECT_EQ(seen.status, 0) << seen.err;
  EXPECT_TRUE(parse_report(seen.out, seen.err).body.empty()) << seen.out;
}

// The kernel's own signals, and their sender: the child that exits.
TOOL_TEST(Sigsnoop, FromTheKernel) {
  auto report = follow("sigsnoop", "signals --rounds 1");
  auto ends = lines_with(report.body, {{"signal_name", "SIGCHLD"}});
  for (auto& event : ends) EXPECT_TRUE(event["from_kernel"].boolean());
  EXPECT_EQ(lines_with(ends, {{"target_comm", "signals"}}).size(), 2u);
}

TESTS_OF(sigsnoop, .events = {"-k", "signals"},
         .stress = event_row("signals --rounds {n/13}", 2600, "calls", "-k"));

}  // namespace
}  // namespace coretap::tooltest
