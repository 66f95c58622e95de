// `coretap compare` with recordings of a workload that knows how its time changed.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

/// Stacks of a workload that is this part of the time (percent) in two functions.
std::string recorded_shares(const TemporaryDirectory& directory, const char* name, int f, int g) {
  auto file = directory.path() + "/" + name;
  Workload shares("shares", Strings{"--f", std::to_string(f), "--g", std::to_string(g), "--sleep",
                                    std::to_string(100 - f - g), "--ms", "60000"});
  shares.release();
  auto ran = run({tool_path("profile"), "-F", "999", "-p", shares.id(), "--record", file,
                  "--interval", "0.25", "--duration", "6"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  return file;
}

Json change_of(const std::string& text, const char* what, const char* key) {
  for (auto& line : lines(text)) {
    auto json = Json::parse(line);
    if (json["type"].str() == "change" && json["what"].str() == what && json["key"].str() == key)
      return json;
  }
  throw std::runtime_error(std::string(what) + " of " + key + " is not in " + text);
}

TEST(MeasuringCompare, StacksOfAWorkloadThatChanged) {
  require_tool("profile");
  TemporaryDirectory directory;
  const auto before = recorded_shares(directory, "before", 40, 30),
             again = recorded_shares(directory, "again", 40, 30),
             after = recorded_shares(directory, "after", 52, 30);
  const auto svg = directory.path() + "/diff.svg";
  auto compare = [&](Strings words) {
    return run(Strings{tool_path("coretap"), "compare"} + words);
  };
  auto found = compare({before, after, "--json", "--svg", svg});
  ASSERT_EQ(found.status, 0) << found.err;
  auto f = change_of(found.out, "total/s", "function=workload_f");
  EXPECT_EQ(f["verdict"].str(), "more");
  EXPECT_LT(f["low"].real(), 0.30);  // 52 of 40
  EXPECT_GT(f["high"].real(), 0.30);
  EXPECT_EQ(change_of(found.out, "total/s", "function=workload_g")["verdict"].str(), "same");
  const auto picture = slurp(svg);
  expect_contains(picture, {"workload_f", "class=\"more6\"", "per second"});
  // Once in the legend, and in a frame.
  EXPECT_NE(picture.find("class=\"more6\""), picture.rfind("class=\"more6\""));
  const auto* condition = "total/s of function=workload_f > +15%";
  EXPECT_EQ(compare({before, after, "--fail-if", condition}).status, 5);
  EXPECT_EQ(compare({before, again, "--fail-if", condition}).status, 0);
  EXPECT_EQ(compare({before, "/etc/hostname"}).status, 2);
}

// Histograms that were recorded in fine slots have percentiles, others only ranges.
TEST(MeasuringCompare, PercentilesOfHistograms) {
  require_tool("runqlat");
  TemporaryDirectory directory;
  auto recorded = [&](const char* name, Strings more) {
    auto file = directory.path() + "/" + name;
    Process shell({.argv = {"/bin/sh", "-c", "while :; do sleep 0.001; done"}});
    auto ran = run(
        Strings{tool_path("runqlat"), "--record", file, "--interval", "0.1", "--duration", "3"} +
        more);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return file;
  };
  auto compare = [&](Strings words) {
    return run(Strings{tool_path("coretap"), "compare"} + words);
  };
  const auto fine = recorded("fine", {}), again = recorded("again", {}),
             wide = recorded("wide", {"--no-fine"});
  auto found = compare({fine, again, "--json"});
  ASSERT_EQ(found.status, 0) << found.err;
  auto p50 = change_of(found.out, "p50", "");
  // Of the same load: a number that is near, and between the bounds of its range.
  EXPECT_LT(p50["low"].real(), p50["change"].real());
  EXPECT_GT(p50["high"].real(), p50["change"].real());
  EXPECT_GT(p50["smallest"].real(), 0);
  auto itself = change_of(compare({fine, fine, "--json"}).out, "p90", "");
  EXPECT_EQ(itself["change"].real(), 0);
  for (auto& pair : {Strings{fine, wide}, Strings{wide, wide}}) {
    auto coarse = compare(pair + Strings{"--json"});
    ASSERT_EQ(coarse.status, 0) << coarse.err;
    EXPECT_TRUE(change_of(coarse.out, "p50", "")["change"].is_null()) << coarse.out;
  }
  expect_contains(run({tool_path("coretap"), "show", "--info", fine}).out,
                  {"8 slots in each power of two"});
  EXPECT_EQ(run({tool_path("coretap"), "show", "--info", wide}).out.find("8 slots"),
            std::string::npos);
}

// The shell starts programs two to four times as often.
TEST(MeasuringCompare, TablesAndEventsOfAWorkloadThatChanged) {
  require_tool("syscount");
  TemporaryDirectory directory;
  auto recorded = [&](const char* name, const char* tool, const char* pause, Strings more) {
    auto file = directory.path() + "/" + name;
    Process shell({.argv = {"/bin/sh", "-c",
                            std::string("while :; do cat /etc/hostname; sleep ") + pause +
                                "; done >/dev/null"}});
    auto ran = run(Strings{tool_path(tool), "--record", file, "--duration", "6"} + more);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return file;
  };
  auto compare = [&](Strings words) {
    return run(Strings{tool_path("coretap"), "compare"} + words);
  };
  const Strings often{"--interval", "0.25", "-P"};
  auto found = compare({recorded("slow", "syscount", "0.04", often),
                        recorded("fast", "syscount", "0.01", often), "--json"});
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(change_of(found.out, "count/s", "comm=cat")["verdict"].str(), "more") << found.out;
  require_tool("execsnoop");
  found = compare({recorded("few", "execsnoop", "0.04", {}),
                   recorded("many", "execsnoop", "0.01", {}), "--json"});
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(change_of(found.out, "events/s", "comm=cat")["verdict"].str(), "more") << found.out;
}

}  // namespace
}  // namespace coretap::tooltest
