// capable against a program whose actions need capabilities, with and without them.
#include "calls.hpp"

namespace coretap::tooltest {
TOOL_TEST(Capable, EachCheck) {
  const std::string three =
      "capable --json --strict --capability SYS_CHROOT,cap_setuid,23 -p {pid} ";
  auto seen = observe_all({three, three + "--denied -K -U", three + "--unique pid"},
                          "privileged --rounds 3");
  auto scene = seen.truth["scene"].items();
  auto all = seen.report(0).body, denied = seen.report(1).body;
  ASSERT_EQ(all.size(), 3 * scene.size());
  for (std::size_t i = 0; i < all.size(); i++) {
    SCOPED_TRACE(i);
    auto &event = all[i], &check = scene[i % scene.size()];
    auto call = check["call"].str();
    expect_same(event, check, {{"capability_number", "capability"}, {"syscall", "call"}});
    expect_fields(event, {{"pid", seen.pid},
                          {"comm", "privileged"},
                          {"uid", 0},
                          {"capability", call == "setuid"   ? "CAP_SETUID"
                                         : call == "chroot" ? "CAP_SYS_CHROOT"
                                                            : "CAP_SYS_NICE"},
                          {"verdict", check["denied"].boolean() ? "deny" : "allow"}});
    EXPECT_GT(event["userns"].u64(), 0u);
    EXPECT_EQ(event["audit"].is_null(), event["insetid"].is_null());
    if (event["audit"].is_null()) continue;  // by the tracepoint
    expect_fields(event, {{"audit", 1}, {"insetid", call == "setuid" ? 1 : 0}});
  }
  ASSERT_EQ(denied.size(), all.size() / 2);
  for (auto& event : denied) {
    EXPECT_EQ(event["verdict"].str(), "deny");
    EXPECT_TRUE(has_frame(event, "user_stack", "main"));
    EXPECT_TRUE(has_frame(event, "kernel_stack", event["syscall"].str()));
  }
  EXPECT_EQ(seen.report(2).body.size(), scene.size());
}

// Another user's process status requires CAP_SYS_PTRACE, without an audit.
TOOL_TEST(Capable, NotAudited) {
  auto events = follow("capable", "privileged").body;
  if (std::ranges::all_of(events, [](auto& event) { return event["audit"].is_null(); })) return;
  for (auto& event : events) EXPECT_EQ(event["audit"].u64(), 1u);
  Tracer all("capable", "--json -v -- " + workload_path("privileged"), {.attached = false});
  EXPECT_FALSE(
      lines_with(all.finish().body, {{"capability", "CAP_SYS_PTRACE"}, {"audit", 0}}).empty());
}

TESTS_OF(capable, .events = {"-x", "privileged"}, .user_stacks = {"-U"},
         .stress = event_row("privileged --rounds {n/6}", 6000, "checks",
                             {"--capability", "SYS_CHROOT,SETUID,SYS_NICE"}));

}  // namespace coretap::tooltest
