// Flame graphs of the tools that draw them, read by an independent XML parser.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

namespace fs = std::filesystem;

constexpr char kReadSvg[] = R"py(
import json, sys, xml.etree.ElementTree as tree
ns = "{http://www.w3.org/2000/svg}"
root = tree.parse(sys.argv[1]).getroot()
frames = [{"name": f.find(ns + "title").text.split("\n")[0], "value": int(f.get("data-v")),
           "style": f.find(ns + "rect").get("class")}
          for f in root.iter(ns + "svg") if f.get("class") == "f"]
head = next(g for g in root.iter(ns + "g") if g.get("class") == "head")
print(json.dumps({"title": root.find(ns + "title").text, "frames": frames,
                  "words": [t.text for t in head.iter(ns + "text") if t.text]}))
)py";

struct Scratch : TemporaryDirectory {
  std::string file(const std::string& name = "graph.svg") const { return path() + "/" + name; }
  Strings files() const {
    Strings names;
    for (auto& f : fs::directory_iterator(path())) names.push_back(f.path().filename());
    return names;
  }
};

struct Graph {
  std::string title;
  Strings words;
  std::vector<Json> frames;

  std::uint64_t total() const { return frames.at(0)["value"].u64(); }
  std::uint64_t sum(std::string_view name) const {
    std::uint64_t sum = 0;
    for (auto& f : frames)
      if (f["name"].str() == name) sum += f["value"].u64();
    return sum;
  }
  /// The styles of the frames of this name, without their shades.
  std::set<std::string> styles(std::string_view name) const {
    std::set<std::string> all;
    for (auto& f : frames)
      if (f["name"].str() == name) {
        auto style = f["style"].str();
        style.pop_back();
        all.insert(style);
      }
    return all;
  }
};

Graph read_svg(const std::string& path) {
  auto json = read_by_python(kReadSvg, path);
  return {json["title"].str(), json["words"].strings(), json["frames"].items()};
}

TOOL_SUITE(FlameGraphs, ("chaintrace offcputime offwaketime profile wakeuptime walltime"));

// The graph includes fractions of a microsecond that lines omit.
TOOL_TEST_P(FlameGraphs, TotalIsThatOfTheLines, tool) {
  require_tool(tool);
  Scratch scratch;
  Workload workload("sleeper", "--sleeps 20 --ms 2 --spin 200 --block-on pipe");
  Tracer tracer(tool, {"--folded", "--svg", scratch.file(), "-p", workload.id()});
  workload.release();
  workload.truth();
  auto shown = lines(tracer.stop_text());
  std::uint64_t sum = 0;
  for (auto& line : shown) sum += std::stoull(line.substr(line.rfind(' ') + 1));
  auto graph = read_svg(scratch.file());
  EXPECT_GE(graph.total(), sum);
  EXPECT_LE(graph.total(), sum + shown.size());
  EXPECT_EQ(graph.frames[0]["name"].str(), "all");
  EXPECT_TRUE(graph.title.starts_with(tool + " --folded --pid " + workload.id() + ", "))
      << graph.title;
  EXPECT_TRUE(contains(graph.title, " s, Linux ")) << graph.title;
  EXPECT_EQ(scratch.files(), Strings("graph.svg"));
  struct stat there {};
  ASSERT_EQ(::stat(scratch.file().c_str(), &there), 0);
  auto mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(there.st_mode & 0777, 0666 & ~mask);
}

TOOL_TEST_P(FlameGraphs, StandardOutput, tool) {
  require_tool(tool);
  Scratch scratch;
  auto result = run({tool_path(tool), "--svg", "-", "--duration", "0.3"}, {}, scratch.file());
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_GE(read_svg(scratch.file()).frames.size(), 1u) << "the graph and nothing else";
}

TOOL_TEST_P(FlameGraphs, RefusesAtOnce, tool) {
  require_tool(tool);
  Scratch scratch;
  for (auto path : {scratch.file("no/such/graph.svg"), scratch.file(""), std::string("/proc/x")}) {
    auto result = run({tool_path(tool), "--svg", path});  // endless without a reader
    EXPECT_EQ(result.status, 1) << path;
    EXPECT_EQ(result.out, "");
    expect_contains(result.err, {"cannot write " + path});
    EXPECT_FALSE(contains(result.err, "Ctrl-C")) << "it had begun: " << result.err;
  }
  EXPECT_EQ(scratch.files(), Strings{});
  expect_refused(tool + " --svg /dev/full --duration 0.2", {"No space left"}, 1);
}

// Nothing is printed, so no reader is needed.
TOOL_TEST_P(FlameGraphs, DoesNotEndWithTheReader, tool) {
  require_tool(tool);
  Scratch scratch;
  Tracer tracer(tool, {"--svg", scratch.file()});
  tracer.process().close_stdout();
  EXPECT_TRUE(await_sleep(tracer.process().pid())) << "it goes on";
  tracer.process().signal(2);
  EXPECT_EQ(tracer.process().wait(), 0) << tracer.process().err();
  EXPECT_EQ(tracer.process().out(), "");
  EXPECT_GE(read_svg(scratch.file()).frames.size(), 1u);
}

// Shares match the data of the same run.
TOOL_TEST(FlameGraph, SharesAreThoseOfTheData) {
  Scratch scratch;
  auto report = observe("offcputime --json -p {pid} --svg " + scratch.file(),
                        "sleeper --sleeps 20 --ms 5", {})
                    .report();
  auto graph = read_svg(scratch.file());
  auto asleep = sum_with_frame(report.body, "user_stack", "workload_middle", "total_ns");
  for (auto& line : report.body) {
    for (auto& f : line["kernel_stack"].strings())
      EXPECT_EQ(graph.styles(f), std::set<std::string>{"k"}) << f;
  }
  EXPECT_EQ(graph.total(), report.sum("total_ns") / 1000);
  EXPECT_EQ(graph.sum("workload_middle"), asleep / 1000);
  EXPECT_GE(graph.sum("workload_middle"), 20u * 4500) << "twenty sleeps of 5 ms";
  EXPECT_EQ(graph.styles("workload_middle"), std::set<std::string>{"p"});
  EXPECT_EQ(graph.styles("sleeper"), std::set<std::string>{"t"});
}

TOOL_TEST(FlameGraph, WakersAreToldApart) {
  Scratch scratch;
  auto seen = observe("chaintrace -p {pid} --svg " + scratch.file(),
                      "sleeper --sleeps 20 --ms 2 --block-on pipe", {});
  EXPECT_EQ(seen.text(), "") << "no text beside it";
  auto graph = read_svg(scratch.file());
  EXPECT_EQ(graph.styles("sleeper"), (std::set<std::string>{"t", "wt"}));
  EXPECT_EQ(graph.styles("--"), std::set<std::string>{"m"});
}

TOOL_TEST(FlameGraph, WhatIsLostIsTold) {
  Scratch scratch;
  auto report =
      report_of("offcputime --json --stack-storage-size 1 --duration 1 --svg " + scratch.file());
  if (!report.lost("untracked")) throw Skip("all that there was had room");
  auto words = read_svg(scratch.file()).words;
  EXPECT_TRUE(std::any_of(words.begin(), words.end(), [&](auto& w) {
    return w.starts_with(std::to_string(report.lost("untracked")) + " event") &&
           contains(w, "not tracked");
  })) << testing::PrintToString(words);
}

TOOL_TEST(FlameGraph, HostileNames) {
  require_tool("offcputime");
  Scratch scratch;
  auto result = run({tool_path("offcputime"), "--comm", "<b>&'\"]]>\x1b\xff", "--svg",
                     scratch.file(), "--", workload_path("hostile"), "--action", "sleep", "--count",
                     "20", "--name", "<b>&'\\x22]]>\\x1b\\xff"});
  EXPECT_EQ(result.status, 0) << result.err;
  auto graph = read_svg(scratch.file());
  EXPECT_GE(graph.sum("<b>&'\"]]>\\x1b\\xff"), 20u * 1500) << "twenty sleeps of 2 ms";
  EXPECT_TRUE(contains(graph.title, " --comm <b>&'\"]]>\\x1b\\xff -- ")) << graph.title;
  EXPECT_FALSE(contains(graph.title, "sleep")) << "arguments may be secret: " << graph.title;
}

}  // namespace
}  // namespace coretap::tooltest
