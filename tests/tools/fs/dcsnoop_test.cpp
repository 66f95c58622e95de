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

// A long row without a pause: all of it arrives, or what does not is counted. Only an emulated
// machine is too slow for all.
TOOL_TEST(Dcsnoop, AccountsForEachNameOfAStorm) {
  require_tool("dcsnoop");
  constexpr std::uint64_t kNames = 300'000;
  Mounted disk("tmpfs", "size=256m");
  auto path = disk.path() + "/report";
  Workload workload("lookups", "--absent " + std::to_string(kNames));
  Tracer tracer("dcsnoop", {"--json", "-p", workload.id()},
                {.stdout_path = path, .attached = false});
  auto attached = [&](auto&, auto&) { return contains(slurp(path), "\"header\""); };
  ASSERT_TRUE(tracer.process().await(attached)) << tracer.process().err();
  workload.release();
  workload.truth();
  tracer.process().signal(2);
  ASSERT_EQ(tracer.process().wait(3 * kPatience), 0) << tracer.process().err();
  const std::string begin = "\"absent-";
  std::vector<bool> shown(kNames);
  std::uint64_t names = 0;
  std::string line, last;
  for (std::ifstream report(path); std::getline(report, line); last = line) {
    auto at = line.find(begin);
    if (at == line.npos) continue;
    auto number = std::stoull(line.substr(at + begin.size()));
    ASSERT_LT(number, kNames);
    EXPECT_FALSE(shown[number]) << number << " is there twice";
    shown[number] = true;
    names++;
  }
  auto ledger = Json::parse(last);
  auto missed = ledger["missed"].u64();
  auto lost = ledger["lost"].u64() + ledger["unread"].u64();
  std::printf("%ju names: %ju shown, %ju lost, %ju missed\n", kNames, names, lost, missed);
  // Of what the kernel skipped it is not known whose it was.
  EXPECT_LE(names + lost, kNames + 20);
  EXPECT_GE(names + lost + missed, kNames);
  if (slowness() <= 3) {
    EXPECT_EQ(names, kNames);
  }
}

TESTS_OF(
    dcsnoop, .events = {{}, "lookups --absent 3"},
    .stress = event_row("lookups --absent {n}", 20000, "lookups").with_slack(20).with_copies(8));

}  // namespace coretap::tooltest
