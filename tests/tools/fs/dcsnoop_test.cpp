// dcsnoop against a process that looks up known names.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Dcsnoop, EachNameThatIsMissed) {
  auto seen =
      observe_all({"dcsnoop --json --strict -p {pid}", "dcsnoop --json --strict -a -F -p {pid}"},
                  "lookups --absent 20 --present 30");
  auto some = seen.report(0).body, whole = seen.report(1).body;
  ASSERT_EQ(some.size(), 20u);
  ASSERT_EQ(whole.size(), 50u);
  for (std::size_t i = 0; i < whole.size(); i++) {
    SCOPED_TRACE(i);
    auto name = i < 20 ? "absent-" + std::to_string(i) : "present";
    expect_fields(whole[i],
                  {{"file", seen.truth["dir"].str() + "/" + name}, {"kind", i < 20 ? "M" : "R"}});
    if (i < 20) expect_fields(some[i], {{"file", name}, {"pid", seen.pid}});
  }
}

TESTS_OF(
    dcsnoop, .events = {{}, "lookups --absent 3"},
    .stress = event_row("lookups --absent {n}", 20000, "lookups").with_slack(20).with_copies(8));

}  // namespace coretap::tooltest
