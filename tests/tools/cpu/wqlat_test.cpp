// wqlat against a workload that queues a known number of work items, and the kernel's own trace of
// work queues.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kLdisc[] = "flush_to_ldisc";

struct OfLdisc {
  Json line, truth;
  std::uint64_t items = 0, ns = 0;  ///< from one event of an item to the next, in the trace
};
OfLdisc beside_trace(const Strings& tool, const std::string& from, const std::string& to) {
  require_tool("wqlat");
  Workload workload("screen", "--typed 300", kLinger);
  Tracer tracer("wqlat", tool + "--json --strict -p " + workload.id());
  Trace trace("workqueue/" + from + " workqueue/" + to);
  workload.release();
  auto truth = workload.truth();
  trace.stop();
  OfLdisc seen{line_with(tracer.stop().body, {{"function", kLdisc}}), truth};
  std::map<std::string, std::uint64_t> open;
  for (auto& e : trace.events()) {
    // "work struct=00000000abcd function=...", "work struct 00000000abcd: function ..."
    auto item = e.words.substr(12, e.words.find_first_of(" :", 12) - 12);
    if (e.name == from && contains(e.words, kLdisc)) open[item] = e.ns;
    if (e.name != to || !open.contains(item)) continue;
    seen.items++;
    seen.ns += e.ns - open[item];
    open.erase(item);
  }
  // The trace's times include the tool's programs, and vice versa.
  auto ns = static_cast<double>(seen.ns), items = static_cast<double>(seen.items);
  EXPECT_NEAR(seen.line["total_ns"].real(), ns, (0.3 * ns + 3e3 * items) * slowness());
  EXPECT_LE(seen.line["count"].u64(), truth["typed"].u64() + 2) << "when it is opened and closed";
  return seen;
}

TOOL_TEST(Wqlat, WaitsAsInTheTrace) {
  auto seen = beside_trace("-FW", "workqueue_queue_work", "workqueue_execute_start");
  EXPECT_GE(seen.line["count"].u64(), seen.truth["typed"].u64());
  EXPECT_GE(seen.items, seen.truth["typed"].u64());
  EXPECT_FALSE(seen.line["wqname"].str().empty());
  check_histogram(seen.line, 1000);
  EXPECT_LE(seen.line["total_ns"].u64(), seen.truth["took_ns"].u64());
}

TOOL_TEST(Wqlat, ExecutionsAsInTheTrace) {
  auto seen = beside_trace("-eF", "workqueue_execute_start", "workqueue_execute_end");
  EXPECT_GE(seen.line["count"].u64(), seen.truth["typed"].u64() - 1) << "the last may be under way";
  EXPECT_GT(seen.line["total_ns"].u64(), 0u);
}

TOOL_TEST(Wqlat, OfOneWorkQueue) {
  auto names = observe("wqlat --json -W -p {pid}", "screen --typed 20").report();
  ASSERT_FALSE(names.body.empty());
  auto queue = names.body[0]["wqname"].str();
  auto seen =
      observe_all({{"wqlat", "--json", "-W", "-w", queue}, {"wqlat", "--json", "-w", queue + "x"}},
                  "screen --typed 20");
  auto one = seen.report(0), none = seen.report(1);
  ASSERT_EQ(one.body.size(), 1u);
  expect_fields(one.body[0], {{"wqname", queue}});
  EXPECT_GE(one.body[0]["count"].u64(), 20u);
  EXPECT_EQ(none.sum("count"), 0u);
  EXPECT_GE(none.lost("filtered"), 20u);
}

TESTS_OF(wqlat, .events = {"-FW", "screen --typed 50"},
         .stress = count_row("screen --typed {n}", 2000, "count", "typed", "-F").with_slack(2),
         .long_run = {{.arguments = "-W 10"}, {.arguments = "-eF 10", .of = "execution"}});

}  // namespace
}  // namespace coretap::tooltest
