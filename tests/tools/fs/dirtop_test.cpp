// dirtop against a process that makes a known number of reads and writes in a private directory.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Dirtop, FilesCountForTheirDirectory) {
  Scene scene("fileio --count 50 --size 3000");
  auto dir = scene.ready()["dir"].str();
  auto above = dir.substr(0, dir.rfind('/')), first = dir.substr(0, dir.find('/', 1));
  const std::pair<std::string, std::string> all[] = {{"--strict", dir},
                                                     {"--strict --depth 1", first},
                                                     {"-d /proc," + above, above},
                                                     {"-d /,/proc -d " + above + "/fileio-*", dir}};
  for (auto& [options, directory] : all) scene.trace("dirtop --json -p {pid} " + options);
  scene.trace("dirtop --json -p {pid} -d /proc");
  scene.trace("dirtop -p {pid} -s wbytes 10");
  auto seen = scene.finish();
  auto of = [&](const char* key) { return seen.truth[key].u64(); };
  for (std::size_t i = 0; i < std::size(all); i++) {
    SCOPED_TRACE(all[i].first);
    // Half of the copies read and the other half write, in the same directory.
    expect_fields(line_with(seen.report(i).body, {}),
                  {is("directory", all[i].second), is("reads", of("reads")),
                   is("writes", of("writes") + of("copies")), is("read_bytes", of("read_bytes")),
                   is("write_bytes", of("write_bytes") + of("copy_bytes"))});
  }
  auto nothing = seen.report(std::size(all));
  EXPECT_TRUE(nothing.body.empty());
  EXPECT_GE(nothing.lost("filtered"), of("calls"));
  expect_contains(seen.text(std::size(all) + 1),
                  {" READS WRITES    R_Kb    W_Kb PATH\n", " " + dir + "\n"});
}

TOOL_TEST(Dirtop, DirectoriesBelowAnotherAreOneRow) {
  auto [seen, other] = observe_beside("fileio --count 30",
                                      Strings{"dirtop --json --strict --comm fileio -d {dir}/.."},
                                      "fileio --count 20");
  auto calls = other["calls"].u64() + seen.truth["calls"].u64();
  auto report = seen.report();
  auto row = line_with(report.body, {});
  EXPECT_EQ(row["reads"].u64() + row["writes"].u64(), calls);
  EXPECT_EQ(report.ledger["shown"].u64(), calls);
}

const DeclareTests kDirtop{of_reads_and_writes("dirtop")};

}  // namespace coretap::tooltest
