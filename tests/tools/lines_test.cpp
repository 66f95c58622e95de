// Source lines of frames (--lines), of a workload with debug information.
#include "harness.hpp"
#include "machine.hpp"

namespace coretap::tooltest {
namespace {

bool has_build_id(const std::string& workload) {
  return run({"/bin/sh", "-c", "readelf -n '" + workload_path(workload) + "' | grep -q 'Build ID'"})
             .status == 0;
}

TOOL_TEST(Lines, AreInTextAndKeys) {
  if (!has_build_id("sleeper")) throw Skip("the workload has no build id, or there is no readelf");
  auto seen = observe("offcputime --lines --json -p {pid}", "sleeper --sleeps 20 --ms 2", {});
  std::size_t found = 0;
  for (auto& line : seen.report().body) {
    auto words = line["user_stack"].strings();
    auto frames = line["user_frames"].items();
    ASSERT_EQ(words.size(), frames.size());
    ASSERT_EQ(line["kernel_stack"].strings().size(), line["kernel_frames"].items().size());
    for (std::size_t i = 0; i < frames.size(); i++) {
      auto& f = frames[i];
      if (f["function"].is_null() || f["function"].str() != "workload_middle") continue;
      found++;
      EXPECT_FALSE(f["inlined"].boolean());
      const auto file = f["file"].str();
      EXPECT_TRUE(file.starts_with("/") && file.ends_with("/workload.h")) << file;
      EXPECT_EQ(words[i], "workload_middle (workload.h:" + std::to_string(f["line"].u64()) + ")");
    }
  }
  EXPECT_GE(found, 1u);
}

TOOL_TEST(Lines, ArePrintedOnlyIfAskedFor) {
  auto seen = observe("offcputime --json -p {pid}", "sleeper --sleeps 5 --ms 2", {});
  for (auto& line : seen.report().body) {
    EXPECT_FALSE(line.has("user_frames"));
    for (auto& word : line["user_stack"].strings()) EXPECT_FALSE(contains(word, ".h:")) << word;
  }
}

}  // namespace
}  // namespace coretap::tooltest
