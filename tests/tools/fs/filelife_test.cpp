// filelife against a program that creates, renames and removes files in known ways.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

void expect_ends(const std::vector<Json>& events, const Json& truth, const std::string& directory) {
  std::vector<std::pair<std::string, std::string>> ended(truth["files"].u64(),
                                                         {"unlinkat", "renamed"});
  const auto files = ended.size();
  for (auto& call : truth["scene"].items()) {
    if (!call["ended"].boolean()) continue;
    auto to = unhex(call["to_hex"].str());
    ended.emplace_back(call["call"].str(), to.empty() ? unhex(call["path_hex"].str()) : to);
  }
  ASSERT_EQ(events.size(), ended.size());
  EXPECT_EQ(events.size(), truth["gone"].u64());
  for (std::size_t i = 0; i < events.size(); i++) {
    SCOPED_TRACE(i);
    auto& [call, path] = ended[i];
    expect_fields(events[i],
                  {{"pid", truth["pid"].u64()}, {"call", call}, {"file", directory + path}});
    EXPECT_GT(events[i]["inode"].u64(), 0u);
  }
  EXPECT_GE(events[files]["age_ns"].u64(), 150'000'000u);
}

// Ended by renames, hard links and replacement; in memory, and on the disk of the directory.
TOOL_TEST(Filelife, EveryFileThatEnds) {
  const Strings scene("removals --files 20 --scene --directories --age 150");
  Scene memory(scene, {});
  Scene disk(scene + Strings{"--in", std::filesystem::current_path()}, {});
  memory.trace("filelife --json --strict -p {pid}");
  disk.trace("filelife --json --strict -F -p {pid}");
  memory.trace("filelife --json --strict -m 149 -p {pid}");
  memory.trace("filelife -p {pid}");
  auto one = memory.finish(), other = disk.finish();
  expect_ends(one.report().body, one.truth, "");
  expect_ends(other.report().body, other.truth, other.truth["dir"].str() + "/");
  auto young = one.report(1).body;
  EXPECT_EQ(young.size(), one.truth["gone"].u64() - 1);
  for (auto& event : young) EXPECT_LE(event["age_ns"].u64(), 149'000'000u);
  expect_contains(one.text(2), {" removals ", " renamed\n"});
}

// Files that still exist take no room from later ones.
TOOL_TEST(Filelife, TheOldestAreForgotten) {
  TemporaryDirectory stay;
  Scene scene("removals --files 20", {});
  scene.trace("filelife --json --strict --max-keys 4096 -p {pid}");
  for (int i = 0; i < 6000; i++) std::ofstream(stay.path() + "/" + std::to_string(i));
  auto seen = scene.finish();
  EXPECT_EQ(seen.report().body.size(), seen.truth["gone"].u64());
}

// io_uring creates and removes files without such system calls: only the name is known.
TOOL_TEST(Filelife, OfIoUring) {
  auto seen = observe("filelife --json --strict -p {pid}", "ringio --rounds 1 --lives 20");
  auto report = seen.report();
  auto hook = report.header["hooks"].items().at(0)["attached"].strings().at(0);
  if (!contains(hook, "security_file_open"))
    throw Skip("this kernel allows no programs at functions; without them io_uring is not seen");
  ASSERT_EQ(report.body.size(), 20u);
  auto data = seen.ready["data"].str();
  for (auto& event : report.body) {
    expect_fields(event,
                  {{"call", "other"}, {"file", data.substr(data.rfind('/') + 1) + ".short-lived"}});
    EXPECT_GT(event["age_ns"].u64(), 0u);
  }
}

TESTS_OF(filelife, .events = {{}, "removals --files 3"},
         .stress = event_row("removals --files {n}", 10000, "gone"));

}  // namespace
}  // namespace coretap::tooltest
