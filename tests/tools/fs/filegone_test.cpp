// filegone against a program that creates, renames and removes files in known ways.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

void expect_removal(const Json& event, const Json& call, const std::string& directory) {
  auto path = unhex(call["path_hex"].str()), to = unhex(call["to_hex"].str());
  auto ret = static_cast<int>(call["ret"].i64());
  const bool cut = path.size() > 4095;
  auto shown = cut ? path.substr(0, 4095) + "..." : path;
  expect_fields(event, {{"call", call["call"].str()},
                        {"file", path.starts_with('/') ? path : directory + shown},
                        {"incomplete", cut},
                        {"new_file", to.empty() ? Value(nullptr) : Value(directory + to)},
                        {"error", ret < 0 ? Value(::strerrorname_np(-ret)) : Value(nullptr)}});
  if (to.empty()) expect_fields(event, {{"action", "DELETE"}});
}

TOOL_TEST(Filegone, EveryCallWithItsPaths) {
  auto seen =
      observe_all({"filegone --json --strict -p {pid}", "filegone --json --strict -F -p {pid}",
                   "filegone --json -x -p {pid}", "filegone -n emovals"},
                  "removals --files 20 --scene --directories", {});
  auto directory = seen.truth["dir"].str() + "/";
  std::vector<Json> good, bad;
  for (auto& call : seen.truth["scene"].items())
    (call["ret"].i64() < 0 ? bad : good).push_back(call);
  auto given = seen.report(0).body, resolved = seen.report(1).body;
  auto errors = seen.report(2);
  const std::size_t bulk = 2 * seen.truth["files"].u64();
  ASSERT_EQ(given.size(), bulk + good.size());
  ASSERT_EQ(resolved.size(), bulk + good.size());
  expect_fields(given[0], {{"file", "file"}});
  expect_fields(resolved[0], {{"new_file", directory + "renamed"}});
  expect_fields(resolved[1], {{"file", directory + "renamed"}});
  for (std::size_t i = 0; i < good.size(); i++) {
    SCOPED_TRACE(i);
    expect_removal(given[bulk + i], good[i], "");
    expect_removal(resolved[bulk + i], good[i], directory);
  }
  EXPECT_EQ(lines_with(given, {{"action", "EXCHANGE"}}).size(), 1u);
  ASSERT_EQ(errors.body.size(), bad.size());
  for (std::size_t i = 0; i < bad.size(); i++) expect_removal(errors.body[i], bad[i], "");
  EXPECT_EQ(errors.lost("truncated"), 1u) << "the path that is too long for the kernel too";
  expect_contains(seen.text(3), {" RENAME   file > renamed\n", " DELETE   renamed\n"});
}

TOOL_TEST(Filegone, FilesByTheirNames) {
  Scene scene("removals --files 20 --scene", {});
  auto directory = scene.ready()["dir"].str();
  const struct {
    std::string options;
    Strings names;  ///< matching names
  } cases[] = {
      {"-f f?rst", "first"},
      {"--file [no]*e -f renamed", "one none renamed"},
      {"-f first/", ""},
      {"-f FIRST", ""},
      {"-F -f " + directory + "/sec*", "second"},
      {"-F -f */removals-*/second", "second"},
      {"-f " + directory + "/second", ""},
  };
  for (auto& c : cases) scene.trace("filegone --json -p {pid} " + c.options);
  auto seen = scene.finish();
  std::vector<std::pair<std::string, std::string>> calls;  // from, to
  for (std::size_t i = 0; i < seen.truth["files"].u64(); i++) {
    calls.emplace_back("file", "renamed");
    calls.emplace_back("renamed", "");
  }
  for (auto& call : seen.truth["scene"].items())
    if (call["ret"].i64() >= 0)
      calls.emplace_back(unhex(call["path_hex"].str()), unhex(call["to_hex"].str()));
  for (std::size_t i = 0; i < std::size(cases); i++) {
    auto& [options, names] = cases[i];
    SCOPED_TRACE(options);
    Strings expected, got;
    for (auto& [from, to] : calls)
      if (std::ranges::count(names, from) || std::ranges::count(names, to))
        expected.push_back(from + ">" + to);
    auto report = seen.report(i);
    for (auto& event : report.body) {
      auto name = [&](const char* key) {
        auto path = event[key].is_null() ? "" : event[key].str();
        return path.substr(path.rfind('/') + 1);
      };
      got.push_back(name("file") + ">" + name("new_file"));
    }
    EXPECT_EQ(got, expected);
    EXPECT_GE(report.lost("filtered"), calls.size() - got.size());
  }
}

TESTS_OF(filegone, .events = {{}, "removals --files 3"},
         .stress = event_row("removals --files {n/2}", 10000, "calls"),
         .long_run = {{.arguments = "-F"}});

}  // namespace
}  // namespace coretap::tooltest
