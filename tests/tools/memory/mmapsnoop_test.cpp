// mmapsnoop against a program that makes known calls of mmap.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Mmapsnoop, EveryMappingOfAFile) {
  auto seen =
      observe_all({"mmapsnoop --json --strict -p {pid}", "mmapsnoop --json --strict -u 54321"},
                  "segments --maps 20");
  EXPECT_TRUE(seen.report(1).body.empty());
  auto report = seen.report();
  ASSERT_EQ(report.body.size(), seen.truth["file_maps"].u64());
  EXPECT_GE(report.lost("filtered"), seen.truth["rounds"].u64()) << "anonymous ones";

  const struct {
    const char *protection, *kind;
    std::uint64_t pages, at_page;
  } expected[] = {
      {"R-E", "-P--", 1, 0}, {"RW-", "S---", 2, 1}, {"R--", "-PF-", 1, 0}, {"R--", "-P--", 1, 0}};
  auto page = seen.truth["page"].u64();
  for (std::size_t i = 0; i < report.body.size(); i++) {
    SCOPED_TRACE(i);
    auto& event = report.body[i];
    auto& e = expected[i % 4];
    const bool fails = i % 4 == 3;
    expect_fields(event, {is("pid", seen.pid), is("comm", "segments"),
                          is("protection", e.protection), is("kind", e.kind),
                          is("size_bytes", e.pages * page), is("offset_bytes", e.at_page * page),
                          is("file", fails ? "/" : seen.truth["path"].str()),
                          is("error", fails ? Value("ENODEV") : Value(nullptr))});
    ASSERT_EQ(event["address"].is_null(), fails);
    if (fails) continue;
    EXPECT_EQ(event["address"].u64() % page, 0u);
    if (i % 4 == 2) expect_fields(event, {{"address", report.body[i - 1]["address"].u64()}});
  }
}

TOOL_TEST(Mmapsnoop, AnonymousOnesAndFailures) {
  auto seen = observe_all(
      {"mmapsnoop --json --strict -a -p {pid}", "mmapsnoop --json --strict -x -a -p {pid}"},
      "segments --maps 10");
  auto rounds = seen.truth["rounds"].u64();
  auto all = seen.report(0).body, failures = seen.report(1).body;
  auto anonymous = lines_with(all, {{"file", nullptr}});
  for (auto& event : anonymous)
    expect_fields(event, {{"kind", "-P-A"}, {"offset_bytes", nullptr}, {"inode", nullptr}});
  EXPECT_EQ(all.size() - anonymous.size(), seen.truth["file_maps"].u64());
  // The C library may make other mappings.
  auto ours = lines_with(anonymous, {{"size_bytes", 4 * seen.truth["page"].u64()}});
  EXPECT_EQ(ours.size(), rounds);
  EXPECT_EQ(failures.size(), rounds);
  for (auto& event : failures) expect_fields(event, {{"error", "ENODEV"}});
}

// The mappings made at a program's start are those it has, except the program and its loader.
TOOL_TEST(Mmapsnoop, LibrariesOfACommand) {
  auto [report, mapped, shown] = maps_of_command("mmapsnoop");
  std::erase_if(mapped,
                [](auto& path) { return !contains(path, ".so") || contains(path, "/ld-"); });
  EXPECT_FALSE(mapped.empty());
  for (auto& path : mapped) EXPECT_TRUE(shown.contains(path)) << path;
}

TESTS_OF(mmapsnoop, .events = {"-T", "segments --maps 3"},
         .stress = {.workload = "segments --maps {n/4}",
                    .events = 1200,
                    .truth = "file_maps",
                    .tiny = "--ring-size 8192"},
         .long_run = {{.arguments = "-a"}});

}  // namespace coretap::tooltest
