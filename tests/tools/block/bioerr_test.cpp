// bioerr against a process whose reads at the end of a device fail; it prints how many.
#include "disks.hpp"

namespace coretap::tooltest {
namespace {

Observed of_failing_reads(const std::vector<Strings>& tools) {
  return on_loop(tools, "--op read --count 20 --lost 32k");
}

TOOL_TEST(Bioerr, EachReadThatFails) {
  auto seen = of_failing_reads(
      {"bioerr --json --strict -d {disk}", "bioerr --json --strict -p {pid}",
       "bioerr --json --strict --no-process -d {disk}", "bioerr --json -p 1 -d {disk}"});
  auto failed = seen.number("failed"), size = seen.number("size");
  ASSERT_EQ(failed, 8u);
  for (std::size_t tool : {0, 1, 2}) {
    ASSERT_EQ(seen.shown(tool), failed);
    auto sector = (seen.number("count") - failed) * size / kSector;
    for (auto& event : seen.body(tool)) {
      EXPECT_EQ(event["rwbs"].str().front(), 'R');
      expect_same(event, seen.ready, {"disk"});
      expect_fields(event, {{"pid", or_null(tool != 2, seen.pid)}, {"error", "EIO"}});
      expect_fields(event, {{"sector", sector}, {"bytes", size}});
      if (tool != 2) expect_fields(event, {{"comm", "blockio"}});
      sector += size / kSector;
    }
  }
  EXPECT_TRUE(seen.body(3).empty());
  EXPECT_EQ(seen.report(3).lost("filtered"), failed) << "only what fails is counted";
}

TOOL_TEST(Bioerr, StackOfTheSubmitter) {
  auto seen = of_failing_reads({"bioerr --json --strict -K -p {pid}", "bioerr -K -p {pid}"});
  ASSERT_EQ(seen.shown(0), seen.number("failed"));
  // The failing read is made by the process; a worker of the loop device finds the error.
  for (auto& event : seen.body()) {
    auto frames = event["kernel_stack"].strings();
    auto has = [&](const std::string& function) {
      return std::ranges::any_of(
          frames, [&](auto& f) { return f == function || f.starts_with(function + "+"); });
    };
    EXPECT_TRUE(has("vfs_read") || has("ksys_pread64")) << seen.text(1);
    EXPECT_FALSE(has("worker_thread") || has("kthread")) << seen.text(1);
  }
  EXPECT_EQ(seen.report().lost("stacks_failed"), 0u);
}

TESTS_OF(bioerr, .events = {"-a", "blockio --make loop --op read --count 5 --lost 8k"},
         .stress = event_row("blockio --make loop --op read --count {n} --span 4m --lost 4m", 1500,
                             "failed"));

}  // namespace
}  // namespace coretap::tooltest
