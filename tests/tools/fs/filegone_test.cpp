// filegone against a program that makes, renames and removes files in known ways.
#include <algorithm>
#include <memory>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

std::string shown(const std::string& path, const std::string& directory) {
  if (path.starts_with('/')) return path;
  return path.size() > 4095 ? directory + path.substr(0, 4095) + "..." : directory + path;
}

void expect_call(const Json& event, const Json& call, const std::string& directory) {
  auto name = call["call"].str();
  auto path = unhex(call["path_hex"].str()), to = unhex(call["to_hex"].str());
  EXPECT_EQ(event["call"].str(), name);
  EXPECT_EQ(event["file"].str(), shown(path, directory));
  EXPECT_EQ(event["incomplete"].boolean(), path.size() > 4095);
  if (to.empty()) {
    EXPECT_TRUE(event["new_file"].is_null());
    EXPECT_EQ(event["action"].str(), "DELETE");
  } else {
    EXPECT_EQ(event["new_file"].str(), directory + to);
  }
  if (call["ret"].i64() < 0)
    EXPECT_EQ(event["error"].str(), ::strerrorname_np(static_cast<int>(-call["ret"].i64())));
  else
    EXPECT_TRUE(event["error"].is_null());
}

TOOL_TEST(Filegone, EveryCallWithItsPaths) {
  require_tool("filegone");
  Workload workload("removals", {"--files", "20", "--scene", "--directories"});
  Tracer tracer("filegone", {"--json", "--strict", "-p", workload.id()});
  Tracer full("filegone", {"--json", "--strict", "-F", "-p", workload.id()});
  Tracer failed("filegone", {"--json", "-x", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto directory = truth["dir"].str() + "/";
  std::vector<Json> good, bad;
  for (auto& call : truth["scene"].items()) (call["ret"].i64() < 0 ? bad : good).push_back(call);
  auto given = tracer.stop(), resolved = full.stop(), errors = failed.stop();
  const std::size_t bulk = 2 * truth["files"].u64();
  ASSERT_EQ(given.body.size(), bulk + good.size());
  ASSERT_EQ(resolved.body.size(), bulk + good.size());
  EXPECT_EQ(given.body[0]["file"].str(), "file");
  EXPECT_EQ(resolved.body[0]["new_file"].str(), directory + "renamed");
  EXPECT_EQ(resolved.body[1]["file"].str(), directory + "renamed");
  std::size_t exchanged = 0;
  for (std::size_t i = 0; i < good.size(); i++) {
    SCOPED_TRACE(i);
    expect_call(given.body[bulk + i], good[i], "");
    expect_call(resolved.body[bulk + i], good[i], directory);
    exchanged += given.body[bulk + i]["action"].str() == "EXCHANGE";
  }
  EXPECT_EQ(exchanged, 1u);
  ASSERT_EQ(errors.body.size(), bad.size());
  for (std::size_t i = 0; i < bad.size(); i++) expect_call(errors.body[i], bad[i], "");
  EXPECT_EQ(errors.lost("truncated"), 1u) << "the path that is too long for the kernel too";
}

TOOL_TEST(Filegone, FilesByTheirNames) {
  require_tool("filegone");
  Workload workload("removals", {"--files", "20", "--scene"});
  auto directory = workload.ready()["dir"].str();
  struct Case {
    Strings options;
    Strings names;  ///< that match
  };
  const Case cases[] = {
      {{"-f", "f?rst"}, {"first"}},
      {{"--file", "[no]*e", "-f", "renamed"}, {"one", "none", "renamed"}},
      {{"-f", "first/"}, {}},
      {{"-f", "FIRST"}, {}},
      {{"-F", "-f", directory + "/sec*"}, {"second"}},
      {{"-F", "-f", "*/removals-*/second"}, {"second"}},
      {{"-f", directory + "/second"}, {}},
  };
  std::vector<std::unique_ptr<Tracer>> tracers;
  for (auto& c : cases) {
    Strings options{"--json", "-p", workload.id()};
    options.insert(options.end(), c.options.begin(), c.options.end());
    tracers.push_back(std::make_unique<Tracer>("filegone", options));
  }
  workload.release();
  auto truth = workload.truth();
  std::vector<std::pair<std::string, std::string>> calls;  // from, to
  for (std::size_t i = 0; i < truth["files"].u64(); i++) {
    calls.emplace_back("file", "renamed");
    calls.emplace_back("renamed", "");
  }
  for (auto& call : truth["scene"].items())
    if (call["ret"].i64() >= 0)
      calls.emplace_back(unhex(call["path_hex"].str()), unhex(call["to_hex"].str()));
  for (std::size_t i = 0; i < tracers.size(); i++) {
    SCOPED_TRACE(i);
    auto& names = cases[i].names;
    auto has = [&](auto& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    Strings expected, got;
    for (auto& [from, to] : calls)
      if (has(from) || has(to)) expected.push_back(from + ">" + to);
    auto report = tracers[i]->stop();
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
  EXPECT_EQ(run({tool_path("filegone"), "-f", ""}).status, 2);
}

TOOL_TEST(Filegone, Text) {
  require_tool("filegone");
  EXPECT_EQ(header_of("filegone", {}), (Strings{"TIME", "PID", "COMM", "ACTION", "FILE"}));
  Workload workload("removals", {"--files", "1", "--scene"});
  Tracer tracer("filegone", {"-n", "emovals"});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_TRUE(safe_for_terminals(text));
  EXPECT_TRUE(contains(text, " RENAME   file > renamed\n")) << text;
  EXPECT_TRUE(contains(text, " DELETE   renamed\n")) << text;
}

const DeclareTests kFilegone{{
    .name = "filegone",
    .events = {{}, "removals --files 3"},
    .stress = {.workload = "removals --files {n/2}",
               .events = 10000,
               .truth = "calls",
               .tiny = "--ring-size 4096"},
    .long_run = {{.arguments = "-F"}},
}};

}  // namespace
}  // namespace coretap::tooltest
