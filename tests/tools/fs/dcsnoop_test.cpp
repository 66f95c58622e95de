// dcsnoop against a process that looks up known names.
#include <fstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Dcsnoop, EachNameThatIsMissed) {
  require_tool("dcsnoop");
  Workload workload("lookups", {"--absent", "20", "--present", "30"}, kLinger);
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

// A long row without a pause: all of it arrives, or what does not is counted. Only an emulated
// machine is too slow for all.
TOOL_TEST(Dcsnoop, AccountsForEachNameOfAStorm) {
  require_tool("dcsnoop");
  constexpr std::uint64_t kNames = 300'000;
  Mounted disk("tmpfs", "size=256m");
  auto path = disk.path() + "/report";
  Workload workload("lookups", {"--absent", std::to_string(kNames)});
  Tracer tracer("dcsnoop", {"--json", "-p", workload.id()},
                {.stdout_path = path, .attached = false});
  auto attached = [&](auto&, auto&) { return contains(slurp(path), "\"header\""); };
  ASSERT_TRUE(tracer.process().await(attached)) << tracer.process().err();
  workload.release();
  workload.truth();
  tracer.process().signal(2);
  ASSERT_EQ(tracer.process().wait(3 * kPatience), 0) << tracer.process().err();
  std::vector<bool> shown(kNames);
  std::uint64_t names = 0;
  std::string line, last;
  for (std::ifstream report(path); std::getline(report, line); last = line) {
    auto at = line.find("\"absent-");
    if (at == line.npos) continue;
    auto number = std::stoull(line.substr(at + std::string("\"absent-").size()));
    ASSERT_LT(number, kNames);
    EXPECT_FALSE(shown[number]) << number << " is there twice";
    shown[number] = true;
    names++;
  }
  auto ledger = Json::parse(last);
  std::printf("%ju names: %ju shown, %ju lost, %ju missed\n", kNames, names, ledger["lost"].u64(),
              ledger["missed"].u64());
  // Of what the kernel skipped it is not known whose it was.
  EXPECT_LE(names + ledger["lost"].u64(), kNames + 20);
  EXPECT_GE(names + ledger["lost"].u64() + ledger["missed"].u64(), kNames);
  if (slowness() <= 3) {
    EXPECT_EQ(names, kNames);
  }
}

TOOL_TEST(Dcsnoop, Columns) {
  require_tool("dcsnoop");
  EXPECT_EQ(header_of("dcsnoop", {}), (Strings{"TIME(s)", "PID", "COMM", "T", "FILE"}));
}

const DeclareTests kDcsnoop{{
    .name = "dcsnoop",
    .events = {{}, "lookups --absent 3"},
    .stress = {.workload = "lookups --absent {n}",
               .events = 20000,
               .truth = "lookups",
               .tiny = "--ring-size 4096",
               .copies = 8,
               .slack = 20},
}};

}  // namespace
}  // namespace coretap::tooltest
