// fmapfault against a workload that knows its faults per file.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Fmapfault, OnlyMappedFiles) {
  Scene scene("faulter --anon 1000 --file 300 --major 60");
  FaultedFiles files(scene.ready());
  scene.trace("fmapfault --json --strict -p {pid}");
  scene.trace("fmapfault --json --strict -w -p {pid}");
  auto seen = scene.finish();
  auto report = seen.report();
  for (auto& row : report.body)
    expect_fields(row, {{"pid", seen.pid}, {"comm", "faulter"}, {"area", "file"}});
  files.expect(report.body, seen.truth);
  // Only one file was written; the thousand anonymous pages are not shown.
  auto of = [&](const char* kind) {
    return seen.truth[kind]["minor"].u64() + seen.truth[kind]["major"].u64();
  };
  expect_within(seen.report(1), {{"faults", of("file"), of("file") + 100}});
  expect_within(report, {{"faults", 0, of("file") + of("cold") + 100}});
}

TESTS_OF(fmapfault, .events = {{}, "faulter --file 100"},
         .stress = count_row("faulter --file {n}", 20000, "faults", [](stress::Load& load) {
                     auto file = load.workload().truth()["file"];
                     return file["minor"].u64() + file["major"].u64();
                   }).with_slack(100));

}  // namespace coretap::tooltest
