#include "stacks/ratio_graph.hpp"

#include "expect.hpp"

namespace coretap {
namespace {

std::vector<StackWord> called(const char* function) {
  return {{StackWord::task, false, "t"}, {StackWord::user, false, function}};
}

/// The part of the picture about a frame: from its name to its style.
std::string frame_of(const std::string& svg, const std::string& name) {
  auto at = svg.find("<title>" + name + "\n");
  return at == svg.npos ? "" : svg.substr(at, svg.find("width=", at) - at);
}

TEST(RatioGraph, ColoursAreComparedToAll) {
  RatioGraph graph;
  struct {
    const char* name;
    std::uint64_t first, second;
  } rows[] = {{"waits", 4000, 500},
              {"usual", 1000, 400},
              {"computes", 200, 700},
              {"alone", 300, 0},
              {"only_second", 0, 400}};
  for (auto& row : rows) {
    if (row.first) graph.add(called(row.name), row.first, 0);
    if (row.second) graph.add(called(row.name), row.second, 1);
  }
  auto svg = graph.svg({"profile --cpi", "cycles", {}}, "cycles", "instructions");
  // Of all: 5500 / 2000 = 2.75.
  EXPECT_TRUE(says(frame_of(svg, "all"), "5,500 cycles (100.00%), 2,000 instructions: 2.75"));
  EXPECT_TRUE(says(frame_of(svg, "all"), "class=\"like\""));
  EXPECT_TRUE(says(frame_of(svg, "waits"), "500 instructions: 8<"));
  EXPECT_TRUE(says(frame_of(svg, "waits"), "class=\"high2\""));
  EXPECT_TRUE(says(frame_of(svg, "usual"), "class=\"like\""));
  EXPECT_TRUE(says(frame_of(svg, "computes"), "class=\"low2\""));
  EXPECT_TRUE(says(frame_of(svg, "alone"), "class=\"none\""));
  EXPECT_EQ(frame_of(svg, "only_second"), "");
  EXPECT_TRUE(says(svg, "compared to 2.75 of all"));
}

TEST(RatioGraph, WithoutTheSecondEvent) {
  RatioGraph graph;
  graph.add(called("f"), 3, 0);
  auto svg = graph.svg({"", "a", {}}, "a", "b");
  EXPECT_TRUE(says(frame_of(svg, "f"), "class=\"none\""));
  EXPECT_TRUE(says(svg, "compared to nothing of all"));
  graph.add(called("g"), 1'234'567'000, 0);
  graph.add(called("g"), 1000, 1);
  EXPECT_TRUE(says(frame_of(graph.svg({"", "a", {}}, "a", "b"), "g"), ": 1,234,567<"));
  EXPECT_TRUE(says(RatioGraph().svg({"", "a", {}}, "a", "b"), "</svg>"));
}

}  // namespace
}  // namespace coretap
