// `coretap guide`: each of its commands runs here, or says why not.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

bool is_seconds(const std::string& word) {
  return !word.empty() && word.size() <= 2 && word.find_first_not_of("0123456789") == word.npos;
}

/// The command for a shorter time: its --duration, or its last words.
Strings shortened(Strings words) {
  const std::string brief = words.at(0) == "why" ? "1" : "0.3";
  if (auto at = std::find(words.begin(), words.end(), "--duration"); at != words.end()) {
    *(at + 1) = brief;
    return words;
  }
  if (words.size() > 2 && is_seconds(words.back()) && is_seconds(words[words.size() - 2])) {
    words.back() = "1";
    words[words.size() - 2] = brief;
  } else if (is_seconds(words.back())) {
    words.back() = brief;
  }
  return words;
}

std::vector<Json> guide_lines(const Strings& arguments) {
  auto result = result_of("coretap" + arguments);
  EXPECT_EQ(result.status, 0) << result.err;
  std::vector<Json> all;
  for (auto& line : lines(result.out)) all.push_back(Json::parse(line));
  return all;
}

void run_commands(const std::string& page) {
  Strings seen;
  for (auto& step : guide_lines({"guide", page, "--json"})) {
    auto command = step["command"].str();
    ASSERT_TRUE(command.starts_with("coretap ")) << command;
    auto words = Strings(command.substr(8));
    if (std::ranges::count(seen, command)) continue;
    seen.push_back(command);
    auto result = result_of("coretap" + shortened(words));
    if (result.status == 3) {
      EXPECT_TRUE(result.err.starts_with(words[0] + ": ")) << command << '\n' << result.err;
      EXPECT_EQ(result.out, "") << command;
    } else {
      EXPECT_EQ(result.status, 0) << command << '\n' << result.err;
    }
  }
  EXPECT_GT(seen.size(), 5u);
}

// Separate tests: each takes some seconds, and an emulated machine needs minutes.
TOOL_TEST(Guide, Checklist) { run_commands("checklist"); }
TOOL_TEST(Guide, Use) { run_commands("use"); }
TOOL_TEST(Guide, Memory) { run_commands("memory"); }
TOOL_TEST(Guide, Cpu) { run_commands("cpu"); }
TOOL_TEST(Guide, Disk) { run_commands("disk"); }
TOOL_TEST(Guide, Network) { run_commands("network"); }
TOOL_TEST(Guide, Locks) { run_commands("locks"); }
TOOL_TEST(Guide, Latency) { run_commands("latency"); }

TOOL_TEST(Guide, ListsItsPages) {
  auto text = said_by("coretap guide");
  Strings tested{"checklist", "use", "memory", "cpu", "disk", "network", "locks", "latency"};
  std::size_t pages = 0;
  for (auto& page : guide_lines({"guide", "--json"})) {
    pages++;
    expect_contains(text, {"\n  " + page["page"].str() + " "});
    EXPECT_TRUE(std::ranges::count(tested, page["page"].str())) << "no test runs its commands";
  }
  EXPECT_EQ(pages, tested.size());
  expect_contains(said_by("coretap guide memory"),
                  {"coretap why 10\n", "Huge pages", "coretap extfrag -i 1 1\n", "Next: "});
  expect_refused("coretap guide no-such-page", {"there is no page", "memory"});
  expect_contains(said_by("coretap man --source guide"), {"\n.Sh MEMORY\n"});
}

}  // namespace
}  // namespace coretap::tooltest
