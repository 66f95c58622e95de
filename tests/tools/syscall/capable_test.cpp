// capable against a program that does what needs capabilities, with and without them.
#include <algorithm>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

const Strings kThree = {"--json", "--strict", "--capability", "SYS_CHROOT,cap_setuid,23"};

std::unique_ptr<Tracer> tracer(const Workload& workload, const Strings& options) {
  Strings words = kThree;
  words.insert(words.end(), {"-p", workload.id()});
  words.insert(words.end(), options.begin(), options.end());
  return std::make_unique<Tracer>("capable", words);
}

bool any_contains(const Json& stack, const std::string& part) {
  auto frames = stack.strings();
  return std::any_of(frames.begin(), frames.end(),
                     [&](auto& frame) { return contains(frame, part); });
}

TOOL_TEST(Capable, EachCheck) {
  require_tool("capable");
  Workload workload("privileged", {"--rounds", "3"}, kLinger);
  auto all = tracer(workload, {}), denied = tracer(workload, {"--denied", "-K", "-U"}),
       once = tracer(workload, {"--unique", "pid"});
  workload.release();
  auto scene = workload.truth()["scene"].items();
  auto report = all->stop(), failed = denied->stop();
  workload.end_lingering();
  ASSERT_EQ(report.body.size(), 3 * scene.size());
  for (std::size_t i = 0; i < report.body.size(); i++) {
    SCOPED_TRACE(i);
    auto &event = report.body[i], &check = scene[i % scene.size()];
    bool setuid = check["call"].str() == "setuid";
    EXPECT_EQ(event["pid"].i64(), workload.pid());
    EXPECT_EQ(event["comm"].str(), "privileged");
    EXPECT_EQ(event["uid"].u64(), 0u);
    EXPECT_EQ(event["capability_number"].u64(), check["capability"].u64());
    EXPECT_EQ(event["capability"].str(), setuid                            ? "CAP_SETUID"
                                         : check["call"].str() == "chroot" ? "CAP_SYS_CHROOT"
                                                                           : "CAP_SYS_NICE");
    EXPECT_EQ(event["verdict"].str(), check["denied"].boolean() ? "deny" : "allow");
    EXPECT_EQ(event["syscall"].str(), check["call"].str());
    EXPECT_GT(event["userns"].u64(), 0u);
    EXPECT_EQ(event["audit"].is_null(), event["insetid"].is_null());
    if (event["audit"].is_null()) continue;  // by the tracepoint
    EXPECT_EQ(event["audit"].u64(), 1u);
    EXPECT_EQ(event["insetid"].u64(), setuid ? 1u : 0u);
  }
  ASSERT_EQ(failed.body.size(), report.body.size() / 2);
  for (auto& event : failed.body) {
    EXPECT_EQ(event["verdict"].str(), "deny");
    EXPECT_TRUE(any_contains(event["user_stack"], "main"));
    EXPECT_TRUE(any_contains(event["kernel_stack"], event["syscall"].str()));
  }
  EXPECT_EQ(once->stop().body.size(), scene.size());
}

// The status of another user's process asks for CAP_SYS_PTRACE, without an audit.
TOOL_TEST(Capable, NotAudited) {
  require_tool("capable");
  auto report = follow("capable", "privileged", {});
  bool known = std::any_of(report.body.begin(), report.body.end(),
                           [](auto& event) { return !event["audit"].is_null(); });
  if (!known) return;
  for (auto& event : report.body) EXPECT_EQ(event["audit"].u64(), 1u);
  Tracer all("capable", {"--json", "-v", "--", workload_path("privileged")}, {.attached = false});
  auto more = all.finish();
  EXPECT_TRUE(std::any_of(more.body.begin(), more.body.end(), [](auto& event) {
    return event["capability"].str() == "CAP_SYS_PTRACE" && !event["audit"].u64();
  }));
}

TOOL_TEST(Capable, Columns) {
  require_tool("capable");
  EXPECT_EQ(header_of("capable", {}),
            (Strings{"TIME", "UID", "PID", "COMM", "CAP", "NAME", "AUDIT", "VERDICT"}));
  EXPECT_EQ(header_of("capable", {"-x"}),
            (Strings{"TIME", "UID", "PID", "TID", "COMM", "CAP", "NAME", "AUDIT", "INSETID",
                     "VERDICT", "USERNS", "SYSCALL"}));
  for (auto& wrong : std::vector<Strings>{{"--unique", "uid"}, {"--capability", "CAP_NONE"}}) {
    auto words = wrong;
    words.insert(words.begin(), tool_path("capable"));
    EXPECT_EQ(run(words).status, 2);
  }
}

const DeclareTests kCapable{{
    .name = "capable",
    .events = {"-x", "privileged"},
    .stress = {.workload = "privileged --rounds {n/6}",
               .events = 6000,
               .options = {"--capability", "SYS_CHROOT,SETUID,SYS_NICE"},
               .truth = "checks",
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
