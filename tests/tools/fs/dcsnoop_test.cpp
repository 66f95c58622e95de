// dcsnoop against a process that looks up known names.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Dcsnoop, EachNameThatIsMissed) {
  require_tool("dcsnoop");
  Workload workload("lookups", {"--absent", "20", "--present", "30"}, {.linger = true});
  Tracer missed("dcsnoop", {"--json", "--strict", "-p", workload.id()});
  Tracer all("dcsnoop", {"--json", "--strict", "-a", "-F", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto some = missed.stop(), whole = all.stop();
  ASSERT_EQ(some.body.size(), 20u);
  ASSERT_EQ(whole.body.size(), 50u);
  for (std::size_t i = 0; i < whole.body.size(); i++) {
    SCOPED_TRACE(i);
    auto name = i < 20 ? "absent-" + std::to_string(i) : "present";
    EXPECT_EQ(whole.body[i]["file"].str(), truth["dir"].str() + "/" + name);
    EXPECT_EQ(whole.body[i]["kind"].str(), i < 20 ? "M" : "R");
    if (i < 20) {
      EXPECT_EQ(some.body[i]["file"].str(), name);
      EXPECT_EQ(some.body[i]["pid"].u64(), truth["pid"].u64());
    }
  }
}

// A long row without a pause: all of it arrives.
TOOL_TEST(Dcsnoop, LosesNothingInAStorm) {
  require_tool("dcsnoop");
  const std::uint64_t count = slowness() > 3 ? 20000 : 300000;
  Workload workload("lookups", {"--absent", std::to_string(count)});
  Tracer tracer("dcsnoop", {"--strict", "-p", workload.id()}, {.stdout_path = "/dev/null"});
  workload.release();
  workload.truth();
  tracer.process().signal(2);
  EXPECT_EQ(tracer.process().wait(), 0) << tracer.process().err();
  EXPECT_FALSE(contains(tracer.process().err(), "lost")) << tracer.process().err();
}

TOOL_TEST(Dcsnoop, Columns) {
  require_tool("dcsnoop");
  EXPECT_EQ(header_of("dcsnoop", {}), (Strings{"TIME(s)", "PID", "COMM", "T", "FILE"}));
}

const DeclareTests declared{{
    .name = "dcsnoop",
    .reports = {{ReportKind::events}},
    .events = {{}, {"lookups", "--absent", "3"}},
    .stress = {.workload = "lookups",
               .arguments = [](std::uint64_t n) -> Strings {
                 return {"--absent", std::to_string(n)};
               },
               .events = 20000,
               .shown = stress::one,
               .truth = stress::says("lookups"),
               .tiny = {"--ring-size", "4096"},
               .copies = 8,
               .slack = 20},
    .long_run = {{}},
}};

}  // namespace
}  // namespace coretap::tooltest
