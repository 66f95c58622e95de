// Tools end on request, whatever else the machine does.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

/// Two loops of open(2) for each CPU: more events than a tool can show.
class Loops {
 public:
  Loops() {
    for (long i = 0; i < 2 * ::sysconf(_SC_NPROCESSORS_ONLN); i++)
      loops_.push_back(
          std::make_unique<Workload>("opener", Strings("--count 1000000000"), Workload::How{}));
    for (auto& loop : loops_) loop->release();
  }
  bool go_on() const {
    return std::ranges::all_of(loops_, [](auto& loop) { return state_of(loop->pid()) != 'Z'; });
  }

 private:
  std::vector<std::unique_ptr<Workload>> loops_;
};

TOOL_TEST(Stop, BesideLoopsThatGoOn) {
  require_tool("opensnoop");
  Loops loops;
  for (auto* how : {"--duration 1", "-- sleep 1", "SIGTERM", "SIGINT"}) {
    SCOPED_TRACE(how);
    const bool by_signal = *how == 'S';
    Tracer tracer("opensnoop", Strings("--json") + Strings(by_signal ? "" : how),
                  {.stdout_path = "/dev/null", .attached = false});
    if (by_signal) {
      ASSERT_TRUE(until([&] { return !bpf_ids(tracer.process().pid()).links.empty(); }));
      tracer.process().signal(how == std::string("SIGINT") ? SIGINT : SIGTERM);
    }
    EXPECT_EQ(tracer.process().wait(), 0) << tracer.process().err();
    EXPECT_TRUE(loops.go_on());
  }
}

// Events in the ring buffer at the end are shown, or counted.
TOOL_TEST(Stop, LedgerHoldsWhatWasNotRead) {
  Loops loops;
  Tracer tracer("opensnoop", "--json --ring-size 16M --duration 0.5", {.attached = false});
  auto report = tracer.finish();
  EXPECT_EQ(report.body.size(), report.ledger["shown"].u64());
  expect_complete("opensnoop", report);
  EXPECT_GT(report.lost("unread"), 0u);
}

}  // namespace
}  // namespace coretap::tooltest
