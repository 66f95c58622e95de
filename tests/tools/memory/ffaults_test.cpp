// ffaults against a workload that knows its faults per file.
#include "../fs/shared.hpp"
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Ffaults, EachFileByItsInode) {
  Scene scene("faulter --anon 1000 --file 300 --major 60");
  FaultedFiles files(scene.ready());
  for (std::string options : {"--strict", "-w", "--strict 0.05"})
    scene.trace("ffaults --json -p {pid} " + options);
  auto seen = scene.finish();
  auto faults = seen.truth["faults"].u64();
  for (std::size_t i : {0, 2}) {
    auto report = seen.report(i);
    files.expect(report.body, seen.truth);
    expect_within(report, {{"faults", faults, faults + 100}});
  }
  // One of these files was written, the other one read.
  auto stores = seen.report(1);
  files.cached.expect(stores.body, seen.truth["file"]);
  EXPECT_EQ(sum(files.cold.rows(stores.body), "major_faults"), 0u);
  EXPECT_GE(stores.lost("filtered"), 60u);
}

// The kernel maps the file below; the path is the one that the program was started by.
TOOL_TEST(Ffaults, FilesOfOverlays) {
  require_tool("ffaults");
  TemporaryDirectory directory;
  auto report = trace_mounts({"ffaults"},
                             on_own_disk(directory.path(), "mkfs.ext4 -qF",
                                         kOverlay + std::string("cp ") + workload_path("opener") +
                                             " all/program; all/program --help >/dev/null"));
  auto faults = only(lines_with(report.body, {{"file", directory.path() + "/disk/all/program"}}));
  EXPECT_GT(faults["faults"].u64(), 0u);
  EXPECT_TRUE(lines_with(report.body, {{"file", "/program"}}).empty());
}

TOOL_TEST(Ffaults, ProcessesAndColumns) {
  auto seen = observe_all({"ffaults -P -s major_faults -r 1 -p {pid}", "ffaults --json -p {pid}"},
                          "faulter --anon 1000 --major 60");
  auto rows = lines(seen.text());
  auto cells = words(rows.at(2));
  ASSERT_EQ(cells.size(), 5u) << rows[2];
  cells.erase(cells.begin() + 2);
  EXPECT_EQ(cells, (Strings{std::to_string(seen.pid), "faulter",
                            std::to_string(seen.truth["cold"]["major"].u64()),
                            seen.ready["cold_file"].str()}));
  for (auto& row : seen.report(1).body) EXPECT_FALSE(row.has("pid"));
}

TESTS_OF(ffaults, .events = {"-P", "faulter --anon 100"},
         .stress = count_row("faulter --anon {n}", 50000, "faults", "faults").with_slack(100));

}  // namespace coretap::tooltest
