// fsslower against a process that prints each operation with its file.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

void expect_operation(const Json& event, const Json& call, const std::string& type) {
  auto ret = call["ret"].i64(), offset = call["offset"].i64();
  const bool moves = offset >= 0;
  expect_fields(event, {is("fs_type", type_of_mount(type)), is("comm", "filecalls"),
                        is("operation", call["operation"].str()), is("file", call["path"].str()),
                        is("bytes", moves ? Value(std::max<std::int64_t>(ret, 0)) : Value(nullptr)),
                        is("offset_bytes", moves ? Value(offset) : Value(nullptr)),
                        is("error", ret < 0 ? Value("EBADF") : Value(nullptr))});
  EXPECT_GT(event["latency_ns"].u64(), 0u);
}

/// Calls that functions see in addition to the scene's: on the file that these write to, stat by
/// path, and on some kernels operations on a directory.
void expect_second(const Json& event, const std::string& directory) {
  auto operation = event["operation"].str(), file = event["file"].str();
  EXPECT_TRUE(operation == "G" || file == directory ||
              (operation == "W" && file == directory + "/other"))
      << operation << " " << file;
}

/// Traced by functions: these calls in order.
void expect_functions(const Report& report, std::size_t first, const std::vector<Json>& calls,
                      const std::string& type) {
  auto directory = calls.front()["path"].str();
  directory.resize(directory.rfind('/'));
  std::size_t at = first, more = 0;
  for (auto& call : calls) {
    // The kernel rejects some calls before the function, and directories have other functions.
    if (call["ret"].i64() < 0 || call["path"].str() == directory) continue;
    SCOPED_TRACE(call["operation"].str() + " " + call["path"].str());
    auto same = [&](const Json& event) {
      return event["operation"].str() == call["operation"].str() &&
             event["file"].str() == call["path"].str() &&
             (call["offset"].i64() < 0 || event["offset_bytes"].i64() == call["offset"].i64());
    };
    for (; at < report.body.size() && !same(report.body[at]); at++, more++)
      expect_second(report.body[at], directory);
    ASSERT_LT(at, report.body.size());
    expect_operation(report.body[at++], call, type);
  }
  for (; at < report.body.size(); at++, more++) expect_second(report.body[at], directory);
  EXPECT_LE(more, 4u);
}

TOOL_SUITE(FsslowerOn, (kFileSystems));

TOOL_TEST_P(FsslowerOn, EveryOperationWithItsFile, type) {
  // It lingers, because the operations of unmounting NFS would be traced, too.
  auto [seen, other] =
      observe_beside("filecalls --rounds 5",
                     Strings{"fsslower --json --strict 0 -t " + type + " -p {pid},{other}"},
                     "filecalls --rounds 1 --scene --mkfs " + type);
  auto calls = seen.truth["scene"].items();
  auto report = seen.report();
  constexpr std::size_t kRound = 12;  // operations before the scene
  if (uses_functions(report)) return expect_functions(report, kRound, calls, type);
  ASSERT_EQ(report.body.size(), kRound + calls.size());
  for (std::size_t i = 0; i < calls.size(); i++) {
    SCOPED_TRACE(i);
    expect_operation(report.body[kRound + i], calls[i], type);
  }
}

TOOL_TEST(Fsslower, NamesOfFileSystemsWhoseModuleIsNotThere) {
  for (std::string kind : {"slower", "dist"}) expect_missing_modules(kind);
}

TESTS_OF(fsslower, .events = {"0", "fileio --count 5"},
         .stress = event_row("fileio --count {n}", 10000, "returned", "0 -t tmpfs"),
         .long_run = {{.arguments = "1"}});

}  // namespace
}  // namespace coretap::tooltest
