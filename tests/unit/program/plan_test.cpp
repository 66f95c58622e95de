#include "all_tools.hpp"
#include "program/attach.hpp"
#include "program/section.hpp"

#include <bpf/libbpf.h>

#include <set>
#include <string>

#include "cli/parser.hpp"
#include "coretap/config.hpp"
#include "kernel/kernel.hpp"
#include "program/session.hpp"

namespace coretap {
namespace {

using Object = std::unique_ptr<bpf_object, ObjectDeleter>;

/// Opened only, which needs no capabilities.
Object open_object(const Tool& tool) {
  libbpf_set_print(nullptr);
  auto bytes = tool.object.bytes();
  return Object(bpf_object__open_mem(bytes.data(), bytes.size(), nullptr));
}

/// Plans on the program of runqlat with hooks defined by the test.
class Plans : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernel.has_btf()) GTEST_SKIP() << "no readable /sys/kernel/btf/vmlinux";
    tool = build(*find_tool("runqlat"));
    object = open_object(tool);
    ASSERT_TRUE(object);
    tool.hooks.clear();
  }
  Result<Plan> plan(std::vector<Hook> hooks, const Refused& refused = {}) {
    tool.hooks = std::move(hooks);
    return make_plan(tool, config, kernel, object.get(), refused);
  }

  Tool tool;
  Config config;
  Kernel kernel;
  Object object;
};

const Candidate kGood{{ProgramName("switch_by_delay")}};
const Candidate kNeedy{{ProgramName("switch_by_delay")},
                       {has_field("task_struct", "no_such_field")}};
const Candidate kOther{{ProgramName("on_wakeup"), ProgramName("switch_by_wakeup")}};

TEST_F(Plans, TheFirstUsableWay) {
  auto p = plan({{"switches", {kNeedy, kOther, kGood}}});
  ASSERT_TRUE(p) << p.error().why;
  ASSERT_EQ(p->hooks.size(), 1u);
  auto& h = p->hooks[0];
  EXPECT_EQ(h.chosen, 1);
  ASSERT_EQ(h.candidates.size(), 2u) << "ways behind the chosen one are not asked about";
  EXPECT_EQ(h.candidates[0].rejected_because, "no field no_such_field in struct task_struct");
  EXPECT_EQ(h.candidates[1].rejected_because, "");
  EXPECT_EQ(h.candidates[1].targets, (Words{"tp_btf/sched_wakeup", "tp_btf/sched_switch"}));
  EXPECT_TRUE(p->limits.empty());
}

TEST_F(Plans, ExplainAsksAboutAllWays) {
  config.give("explain", "");
  auto p = plan({{"switches", {kNeedy, kGood, kOther}}});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->hooks[0].chosen, 1);
  EXPECT_EQ(p->hooks[0].candidates.size(), 3u);
  EXPECT_EQ(explain(*p, true),
            "attach points by purpose (*: used here, -: not used)\n"
            "switches:\n"
            "  - tp_btf/sched_switch: no field no_such_field in struct task_struct\n"
            "  * tp_btf/sched_switch\n"
            "  - tp_btf/sched_wakeup + tp_btf/sched_switch: possible, not needed\n");
  auto json = explain_json(*p, "thing");
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0],
            R"({"type":"hook","tool":"thing","hook":"switches","wanted":true,"without":null,)"
            R"("candidates":[{"attach_points":["tp_btf/sched_switch"],"used":false,)"
            R"("refused":"no field no_such_field in struct task_struct","places":[]},)"
            R"({"attach_points":["tp_btf/sched_switch"],"used":true,"refused":null,"places":[]},)"
            R"({"attach_points":["tp_btf/sched_wakeup","tp_btf/sched_switch"],"used":false,)"
            R"("refused":null,"places":[]}]})");
  EXPECT_EQ(explain(*p, false), "switches:\n  * tp_btf/sched_switch\n");
}

TEST_F(Plans, NoWayIsAnErrorThatTellsWhatWasTried) {
  auto p = plan({{"switches", {kNeedy, {{ProgramName("no_such_program")}}}}});
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().status, kUnsupported);
  EXPECT_TRUE(says(p.error().what, "switches"));
  EXPECT_TRUE(says(p.error().why, "no_such_field", "no_such_program"));
  EXPECT_FALSE(p.error().hint.empty());
  EXPECT_FALSE(plan({{"switches", {}}})) << "a hook without candidates";
}

TEST_F(Plans, OptionalHooksAreLimits) {
  auto p = plan({{"switches", {kGood}}, {"more", {kNeedy}, {}, "more is not seen"}});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->hooks[1].chosen, -1);
  ASSERT_EQ(p->limits.size(), 1u);
  EXPECT_TRUE(p->limits[0].starts_with("more is not seen (tried tp_btf/sched_switch (no field"))
      << p->limits[0];
  EXPECT_TRUE(says(explain(*p, false), "  without: more is not seen\n"));
}

TEST_F(Plans, LimitsOfTheChosenWayOnly) {
  Candidate less = kGood;
  less.caveat = "less true";
  auto p = plan({{"switches", {less, kOther}}});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->limits, (Words{"less true"}));
  p = plan({{"switches", {kOther, less}}});
  ASSERT_TRUE(p);
  EXPECT_TRUE(p->limits.empty());
}

TEST_F(Plans, ConditionsDecideWhatIsWanted) {
  auto hooks = std::vector<Hook>{
      {"switches", {kGood}}, {"by pid", {kNeedy}, "pids"}, {"always", {kOther}, "!pids"}};
  auto p = plan(hooks);
  ASSERT_TRUE(p) << "what was not requested need not be possible";
  EXPECT_FALSE(p->hooks[1].wanted);
  EXPECT_EQ(p->hooks[1].chosen, -1);
  EXPECT_EQ(p->hooks[2].chosen, 0);
  EXPECT_TRUE(says(explain(*p, true), "by pid: not asked for (only with --pids)\n"));
  EXPECT_FALSE(says(explain(*p, false), "by pid"));
  hooks[1].candidates = {kGood};
  config.give("pids", "");
  p = plan(hooks);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->hooks[1].chosen, 0);
  EXPECT_FALSE(p->hooks[2].wanted);
  EXPECT_TRUE(says(explain(*p, true), "always: not asked for (only without --pids)\n"));
}

TEST_F(Plans, RefusedProgramsGiveWayToTheNext) {
  auto p = plan({{"switches", {kGood, kOther}}}, {{"switch_by_delay", "Operation not permitted"}});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->hooks[0].chosen, 1);
  EXPECT_EQ(p->hooks[0].candidates[0].rejected_because, "Operation not permitted");
  EXPECT_FALSE(
      plan({{"switches", {kGood, kOther}}}, {{"switch_by_delay", "no"}, {"on_wakeup", "no"}}));
}

TEST_F(Plans, OneProgramAtTheReturnsOfSeveralFunctions) {
  tool = build(*find_tool("gethostlatency"));
  object = open_object(tool);
  const auto symbols_of = [](const Plan& plan, std::string_view program) {
    std::set<std::string> symbols;
    if (auto places = plan.places(program))
      for (auto& point : places->points) symbols.insert(point.symbol);
    return symbols;
  };
  auto all = make_plan(tool, config, kernel, object.get(), {});
  if (!all) GTEST_SKIP() << all.error().what << ": " << all.error().why;
  const auto returns = symbols_of(*all, "on_found");
  EXPECT_TRUE(returns.contains("getaddrinfo"));
  EXPECT_TRUE(returns.contains("gethostbyname2"));
  std::set<std::string> entries;
  for (auto& hook : all->hooks) {
    ASSERT_TRUE(hook.used()) << hook.hook->name;
    EXPECT_EQ(hook.used()->targets.at(1), "uretprobe/libc:" + std::string(hook.hook->name));
    entries.merge(symbols_of(*all, hook.used()->way->programs.at(0)));
  }
  EXPECT_EQ(returns, entries);
  // A function whose entry cannot be probed is left out, and only that one.
  auto fewer = make_plan(tool, config, kernel, object.get(), {{"on_gethostbyname2", "for a test"}});
  ASSERT_TRUE(fewer) << fewer.error().why;
  entries.erase("gethostbyname2");
  EXPECT_EQ(symbols_of(*fewer, "on_found"), entries);
}

TEST_F(Plans, Needs) {
  struct {
    Need need;
    std::string_view refusal;
  } cases[] = {
      {has_field("task_struct", "pid"), ""},
      {has_field("no_such_struct", "pid"), "no field pid in struct no_such_struct"},
      {has_enumerator("bpf_map_type", "BPF_MAP_TYPE_HASH"), ""},
      {has_enumerator("bpf_map_type", "BPF_NONE"), "no BPF_NONE in enum bpf_map_type"},
      {{Need::function, "vfs_read"}, ""},
      {{Need::function, "no_such_function"}, "no function no_such_function"},
      {has_arguments("sched_process_fork", 2), ""},
      {has_arguments("sched_process_fork", 3),
       "tracepoint sched_process_fork has 2 arguments, not 3"},
      {has_arguments("sched_process_fork", 1),
       "tracepoint sched_process_fork has 2 arguments, not 1"},
      {has_arguments("no_such_tracepoint", 1), "no tracepoint no_such_tracepoint"},
  };
  for (auto& c : cases) {
    // A variant without programs: only the needs decide.
    auto p = plan({{"hook", {{{}, {c.need}}}, {}, "optional"}});
    ASSERT_TRUE(p);
    EXPECT_EQ(p->hooks[0].candidates.at(0).rejected_because, c.refusal);
    EXPECT_EQ(p->hooks[0].chosen, c.refusal.empty() ? 0 : -1);
  }
}

TEST_F(Plans, SelectTurnsOnWhatIsChosenAndNothingElse) {
  auto p =
      plan({{"switches", {kNeedy, kOther}}, {"never", {{{ProgramName("on_wakeup_new")}}}, "pids"}});
  ASSERT_TRUE(p);
  select_programs(*p, object.get(), {"filter_follow"});
  WordSet loaded;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    if (bpf_program__autoload(program)) loaded.insert(bpf_program__name(program));
  }
  EXPECT_EQ(loaded, (WordSet{"filter_follow", "on_wakeup", "switch_by_wakeup"}));
}

class ToolPlans : public testing::TestWithParam<const Registered*> {
 protected:
  void SetUp() override { ASSERT_TRUE(object); }
  Tool tool = build(*GetParam());
  Object object = open_object(tool);
};
INSTANTIATE_TEST_SUITE_P(All, ToolPlans, each_with_program(), name_of_registered);

TEST_P(ToolPlans, PlanOrReasons) {
  Kernel kernel;
  Config config;
  config.give("explain", "");
  auto p = make_plan(tool, config, kernel, object.get(), {});
  if (!p) {
    EXPECT_EQ(p.error().status, kUnsupported);
    EXPECT_TRUE(says(p.error().why, "tried"));
    return;
  }
  EXPECT_EQ(p->hooks.size(), tool.hooks.size());
  auto text = explain(*p, true);
  EXPECT_TRUE(text.ends_with('\n'));
  for (auto& hook : tool.hooks) EXPECT_TRUE(says(text, std::string(hook.name) + ":"));
  // Suggested options must exist.
  for (auto at = text.find("--"); at != std::string::npos; at = text.find("--", at + 2)) {
    auto name = text.substr(at + 2, text.find_first_of("= ),:\n", at) - at - 2);
    EXPECT_TRUE(has_option(tool, name)) << "--" << name << " in: " << text;
  }
}

TEST(Section, ListOfTracepoints) {
  EXPECT_EQ(listed_tracepoints("syscalls/sys_exit_open"), (Words{"syscalls/sys_exit_open"}));
  EXPECT_EQ(listed_tracepoints("syscalls/sys_exit_open,sys_exit_creat"),
            (Words{"syscalls/sys_exit_open", "syscalls/sys_exit_creat"}));
  EXPECT_EQ(listed_tracepoints(""), (Words{""}));
}

}  // namespace
}  // namespace coretap
