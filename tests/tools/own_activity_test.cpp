// Tools that name processes exclude coretap's own activity, and count it as filtered.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

/// Rows or events of the tracer itself, from half a second in which it writes into a file.
std::uint64_t own_rows(const std::string& tool, Strings options, std::uint64_t* filtered) {
  TemporaryDirectory scratch;
  auto file = scratch.path() + "/out";
  for (auto* word : {"--json", "--duration", "0.5", "-o"}) options.emplace_back(word);
  options.push_back(file);
  Tracer tracer(tool, options, {.attached = false});
  auto pid = static_cast<std::uint64_t>(tracer.process().pid());
  EXPECT_EQ(tracer.process().wait(), 0) << tracer.process().err();
  auto report = parse_report(slurp(file), tracer.process().err());
  if (filtered) *filtered = report.lost("filtered");
  return report.of_process(pid).size();
}

void expect_left_out(const std::string& tool, const Strings& options) {
  require_tool(tool);
  std::uint64_t filtered = 0;
  EXPECT_EQ(own_rows(tool, options, &filtered), 0u);
  EXPECT_GT(filtered, 0u);
  auto with = options;
  with.emplace_back("--include-self");
  EXPECT_GT(own_rows(tool, with, nullptr), 0u);
}

TOOL_TEST(OwnActivity, RowsOfATable) { expect_left_out("syscount", {"-P", "-i", "0.1"}); }

// Events caused by their own output; events of this thread cause the first output.
TOOL_TEST(OwnActivity, Events) {
  TemporaryDirectory scratch;
  std::jthread writer([path = scratch.path() + "/file"](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::ofstream(path) << "a line\n";
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  expect_left_out("fsslower", {"0"});
}

}  // namespace
}  // namespace coretap::tooltest
