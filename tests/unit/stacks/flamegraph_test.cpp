#include "stacks/flamegraph.hpp"

#include <deque>

#include "coretap/sanitize.hpp"
#include "coretap/symbols.hpp"
#include "expect.hpp"
#include "program/picture.hpp"
#include "stacks/flamegraph_script.hpp"

namespace coretap {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using Path = std::vector<StackWord>;

/// A frame as in the file.
struct Box {
  std::string name, style;  // the name as XML has it
  double x = 0, width = 0;  // per cent
  int y = 0;
  std::uint64_t value = 0;
};

std::string between(std::string_view text, std::string_view begin, std::string_view end) {
  auto at = text.find(begin);
  if (at == text.npos) return "(none)";
  text.remove_prefix(at + begin.size());
  return std::string(text.substr(0, text.find(end)));
}

std::vector<Box> boxes(const std::string& svg) {
  constexpr auto kBegin = "<svg class=\"f\""sv;
  std::vector<Box> all;
  for (auto at = svg.find(kBegin); at != svg.npos; at = svg.find(kBegin, at + 1)) {
    auto text = svg.substr(at, svg.find("</svg>", at) - at);
    auto title = between(text, "<title>", "</title>");
    all.push_back({title.substr(0, title.find('\n')), between(text, "<rect class=\"", "\""),
                   strtod(between(text, " x=\"", "\"").c_str(), nullptr),
                   strtod(between(text, " width=\"", "\"").c_str(), nullptr),
                   atoi(between(text, " y=\"", "\"").c_str()),
                   strtoull(between(text, "data-v=\"", "\"").c_str(), nullptr, 10)});
  }
  return all;
}

Box box(const std::string& svg, std::string_view name) {
  for (auto& b : boxes(svg))
    if (b.name == name) return b;
  ADD_FAILURE() << "no frame " << name;
  return {};
}

TEST(FlameGraph, StatesHaveTheirColors) {
  FlameGraph graph;
  graph.add(Path{{StackWord::task, false, "t"}, {StackWord::cpu, false, "[cpu.user]"}}, 3);
  graph.add(Path{{StackWord::task, false, "t"}, {StackWord::other, false, "[exec]"}}, 1);
  graph.add(Path{{StackWord::task, true, "w"}, {StackWord::kernel, true, "k"}}, 1);
  auto svg = graph.svg({"", "us", {}});
  auto style = [&](auto name) {
    auto text = box(svg, name).style;
    return text.substr(0, text.size() - 1);
  };
  EXPECT_EQ(style("[cpu.user]"), "sc");
  EXPECT_EQ(style("[exec]"), "so");
  EXPECT_EQ(style("w"), "wt");
  EXPECT_EQ(style("k"), "wk");
}

/// The only tags that the file may have, whatever the names contain.
void expect_only_our_tags(const std::string& svg) {
  auto text = svg;
  for (auto* part : {"style", "script"}) {  // CDATA
    auto begin = text.find(std::string("<") + part + "><![CDATA["),
         end = text.find("]]></" + std::string(part) + ">");
    ASSERT_TRUE(begin < end && end != text.npos) << part;
    text.erase(begin, end - begin + 3);
  }
  const WordSet ours{"?xml",  "svg",    "/svg",   "title", "/title",        "rect",
                     "g",     "/g",     "text",   "/text", "foreignObject", "/foreignObject",
                     "input", "/style", "/script"};
  for (auto at = text.find('<'); at != text.npos; at = text.find('<', at + 1)) {
    auto tag = text.substr(at + 1, text.find_first_of(" />", at + 2) - at - 1);
    ASSERT_TRUE(ours.contains(tag)) << tag;
  }
  const WordSet entities{"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  for (auto at = text.find('&'); at != text.npos; at = text.find('&', at + 1))
    ASSERT_TRUE(entities.contains(text.substr(at, text.find(';', at) - at + 1)))
        << text.substr(at, 9);
  for (unsigned char c : text) ASSERT_TRUE(c >= 0x20 || c == '\n') << static_cast<int>(c);
  ASSERT_EQ(text, valid_utf8(text));
}

PictureTitle titled(std::string title) { return {std::move(title), "samples", {}}; }

/// A frame of a file's code.
FramePlace in_file(std::string_view object, bool program) {
  FramePlace place;
  place.object = object;
  place.file = std::make_shared<const CodeFile>(CodeFile{.path = {}, .program = program});
  place.at = 1;
  return place;
}

/// The styles of frames by their names, without the shade.
std::map<std::string, std::string> styles(const std::string& svg) {
  std::map<std::string, std::string> all;
  for (auto& b : boxes(svg))
    all[b.name] = b.style.substr(0, b.style.find_last_not_of("0123456789") + 1);
  return all;
}

TEST(FlameGraph, ColoursTellTheKindOfCode) {
  auto program = in_file("/usr/bin/nginx", true), library = in_file("/lib/libc.so.6", false);
  FramePlace compiled{.object = "[anon]", .compiled = true}, inlined = compiled;
  inlined.inlined = true;
  const FramePlace gone{.object = "/opt/plugin.so.2 (deleted)"},
      gone_program{.object = "/opt/tool"};
  FlameGraph graph(1, FlameGraph::ColourBy::code);
  graph.add(Path{{StackWord::task, false, "t"},
                 {StackWord::user, false, "main", &program},
                 {StackWord::user, false, "call", &library},
                 {StackWord::user, false, "java", &compiled},
                 {StackWord::user, false, "get", &inlined},
                 {StackWord::user, false, "plugin", &gone},
                 {StackWord::user, false, "tool", &gone_program},
                 {StackWord::user, false, "nowhere"},
                 {StackWord::kernel, false, "read"},
                 {StackWord::kernel, true, "wake"},
                 {StackWord::user, true, "wakes", &library}},
            1);
  auto svg = graph.svg(titled("t"));
  const std::map<std::string, std::string> expected{
      {"all", "root"},  {"t", "t"},    {"main", "p"},   {"call", "l"},
      {"java", "j"},    {"get", "i"},  {"plugin", "l"}, {"tool", "p"},
      {"nowhere", "u"}, {"read", "k"}, {"wake", "wk"},  {"wakes", "wu"}};
  EXPECT_EQ(styles(svg), expected);
  EXPECT_TRUE(
      says(svg, ">program</text>", ">library</text>", ">JIT-compiled</text>", ">inlined</text>"));
  // The same name in other code is another frame, but only where it has another colour.
  for (auto by :
       {FlameGraph::ColourBy::code, FlameGraph::ColourBy::kind, FlameGraph::ColourBy::name}) {
    FlameGraph two(1, by);
    two.add(Path{{StackWord::user, false, "copy", &program}}, 1);
    two.add(Path{{StackWord::user, false, "copy", &library}}, 1);
    EXPECT_EQ(boxes(two.svg(titled("t"))).size(), by == FlameGraph::ColourBy::code ? 3u : 2u);
  }
}

TEST(FlameGraph, ColoursTellTheObject) {
  std::deque<FramePlace> places;
  FlameGraph graph(1, FlameGraph::ColourBy::object), other(1, FlameGraph::ColourBy::object);
  Path one;
  for (int i = 0; i < 12; i++) {
    places.push_back(in_file("/lib/lib<" + std::to_string(i) + ">.so", false));
    one = {{StackWord::user, false, "f" + std::to_string(i), &places.back()}};
    graph.add(one, 100 - static_cast<std::uint64_t>(i));
  }
  const FramePlace module{.object = "ext4"};
  graph.add(Path{{StackWord::kernel, false, "read", &module}}, 1000);
  auto svg = graph.svg(titled("t"));
  auto of = styles(svg);
  EXPECT_EQ(of["read"], "p") << "the largest has the first colour";
  WordSet seven;
  for (int i = 0; i < 7; i++) seven.insert(of["f" + std::to_string(i)]);
  EXPECT_EQ(seven.size(), 7u);
  for (int i = 7; i < 12; i++) EXPECT_EQ(of["f" + std::to_string(i)], "wt") << i;
  EXPECT_TRUE(
      says(svg, ">[ext4]</text>", ">lib&lt;0&gt;.so</text>", ">other files, wakers</text>"));
  EXPECT_FALSE(says(svg, ">lib&lt;7&gt;.so</text>"));
  expect_only_our_tags(svg);
  // The order in which they come does not matter.
  for (int i = 12; i-- > 0;)
    other.add(Path{{StackWord::user, false, "f" + std::to_string(i),
                    &places[static_cast<std::size_t>(i)]}},
              100 - static_cast<std::uint64_t>(i));
  other.add(Path{{StackWord::kernel, false, "read", &module}}, 1000);
  EXPECT_EQ(other.svg(titled("t")), svg);
}

TEST(FlameGraph, ColoursTellTheName) {
  auto library = in_file("/lib/libc.so.6", false);
  FlameGraph graph(1, FlameGraph::ColourBy::name);
  graph.add(Path{{StackWord::task, false, "same"}, {StackWord::user, false, "same", &library}}, 1);
  graph.add(Path{{StackWord::kernel, false, "same"}}, 1);
  WordSet found;
  for (auto& b : boxes(graph.svg(titled("t"))))
    if (b.name == "same") found.insert(b.style);
  EXPECT_EQ(found.size(), 2u) << "a task's, and one for both functions";
  EXPECT_TRUE(says(graph.svg(titled("t")), ">functions, by name</text>"));
}

TEST(FlameGraph, ColoursAddLittle) {
  // A profile of ordinary size; in front of colours a frame had the same attributes.
  std::deque<FramePlace> places;
  auto size = [&](auto by) {
    FlameGraph graph(1, by);
    std::mt19937 random(7);
    for (int i = 0; i < 2000; i++) {
      Path path;
      for (int d = 0; d < 12; d++) {
        places.push_back(in_file("/lib/lib" + std::to_string(random() % 9) + ".so", d % 2));
        path.push_back(
            {StackWord::user, false, "function_" + std::to_string(random() % 3), &places.back()});
      }
      graph.add(path, 1 + random() % 9);
    }
    auto svg = graph.svg(titled("t"));
    return static_cast<double>(svg.size()) / static_cast<double>(boxes(svg).size());
  };
  const auto plain = size(FlameGraph::ColourBy::kind);
  for (auto by :
       {FlameGraph::ColourBy::code, FlameGraph::ColourBy::object, FlameGraph::ColourBy::name})
    EXPECT_LT(size(by), 1.1 * plain) << "bytes for each frame";
}

Path user(const Words& names) {
  Path path;
  for (auto& name : names) path.push_back({StackWord::user, false, name});
  return path;
}

/// The graph of one stack.
std::string drawn(const Words& names) {
  FlameGraph graph;
  graph.add(user(names), 1);
  return graph.svg(titled("t"));
}

TEST(FlameGraph, EqualFramesMergeAndSum) {
  FlameGraph graph;
  graph.add(user({"main", "a", "b"}), 30);
  graph.add(user({"main", "a"}), 20);
  graph.add(user({"main", "c"}), 10);
  graph.add(user({"main", "a", "b"}), 40);
  EXPECT_EQ(graph.total(), 100u);
  auto svg = graph.svg(titled("t"));
  auto all = boxes(svg);
  ASSERT_EQ(all.size(), 5u) << "all, main, a, b, c";
  EXPECT_EQ(all[0].name, "all");
  for (auto [name, value] :
       {std::pair{"all", 100u}, {"main", 100u}, {"a", 90u}, {"b", 70u}, {"c", 10u}})
    EXPECT_EQ(box(svg, name).value, value) << name;
  // From the left by name; samples that end in a frame itself are at its right end.
  EXPECT_DOUBLE_EQ(box(svg, "a").x, 0);
  EXPECT_DOUBLE_EQ(box(svg, "b").x, 0);
  EXPECT_DOUBLE_EQ(box(svg, "b").width, 70);
  EXPECT_DOUBLE_EQ(box(svg, "c").x, 90);
  EXPECT_DOUBLE_EQ(box(svg, "c").width, 10);
  EXPECT_GT(box(svg, "all").y, box(svg, "main").y) << "the root is at the bottom";
  EXPECT_EQ(box(svg, "a").y, box(svg, "c").y);
}

TEST(FlameGraph, KindsAndWakersAreApart) {
  FlameGraph graph;
  for (auto kind : {StackWord::task, StackWord::user, StackWord::kernel, StackWord::mark})
    for (bool waker : {false, true}) graph.add(Path{{kind, waker, "same"}}, 1);
  auto svg = graph.svg(titled("t"));
  WordSet styles;
  std::set<char> shades;
  for (auto& b : boxes(svg)) {
    if (b.name != "same") continue;
    styles.insert(b.style.substr(0, b.style.size() - 1));
    shades.insert(b.style.back());
  }
  EXPECT_EQ(styles, (WordSet{"t", "u", "k", "m", "wt", "wu", "wk"}));
  EXPECT_EQ(shades.size(), 1u) << "equal names look equal";
  EXPECT_TRUE(says(svg, ">task<", ">user<", ">kernel<", ">mark<", ">waker<", ">waker&#39;s user<",
                   ">waker&#39;s kernel<"));
  // The legend lists only kinds that occur.
  svg = drawn({"main"});
  EXPECT_TRUE(says(svg, ">user</text>"));
  for (auto* other : {">kernel</text>", ">waker</text>"}) EXPECT_FALSE(says(svg, other));
}

TEST(FlameGraph, ValuesAreScaled) {
  FlameGraph graph(1000);
  for (int i = 0; i < 4; i++) graph.add(user({"a"}), 999);
  graph.add(user({"b"}), 6004);
  auto svg = graph.svg({"t", "microseconds", {}});
  EXPECT_EQ(box(svg, "all").value, 10u);
  EXPECT_EQ(box(svg, "a").value, 3u) << "parts of a microsecond add up";
  EXPECT_DOUBLE_EQ(box(svg, "b").width, 60.04);
  EXPECT_TRUE(says(svg, ">total: 10 microseconds<"));
}

TEST(FlameGraph, TitleAndNotes) {
  FlameGraph graph;
  graph.add(user({"a"}), 1'234'567);
  auto svg = graph.svg({"tool <&> --comm '\"'", "samples", {"12 lost & gone", "<b>"}});
  EXPECT_TRUE(says(svg, "<title>tool &lt;&amp;&gt; --comm &#39;&quot;&#39;</title>",
                   ">total: 1,234,567 samples<", ">12 lost &amp; gone<", ">&lt;b&gt;<"));
  expect_only_our_tags(svg);
}

TEST(FlameGraph, NothingAtAll) {
  FlameGraph graph;
  auto svg = graph.svg(titled("t"));
  EXPECT_EQ(boxes(svg).size(), 1u);
  EXPECT_EQ(svg.find("nan"), svg.npos);
  FlameGraph zeros;
  zeros.add(user({"a"}), 0);
  EXPECT_EQ(boxes(zeros.svg(titled("t"))).size(), 1u);
  FlameGraph pathless;
  pathless.add({}, 5);
  EXPECT_EQ(box(pathless.svg(titled("t")), "all").value, 5u);
}

TEST(FlameGraph, HostileNames) {
  Words names = {"</title><script>alert(1)</script>",
                 "]]><script>alert(1)</script><![CDATA[",
                 "\" onload=\"alert(1)",
                 "' onclick='alert(1)",
                 "<!--",
                 "&lt;&#60;&unknown;",
                 "<!ENTITY x SYSTEM \"file:///etc/passwd\">",
                 "javascript:alert(1)",
                 "\x1b[2J\x07\r\n\t",
                 "\xff\xfe\xc0\x80",
                 "\xef\xbf\xbe\xef\xbf\xbf\xed\xa0\x80",
                 "\xe2\x80\xaetxt.exe",
                 "{}%s%n${x}",
                 ""};
  for (auto& name : {"a\0b"s, std::string(5000, 'x'), std::string(5000, '\xff')})
    names.push_back(name);
  FlameGraph graph;
  for (auto& name : names)
    graph.add(Path{{StackWord::task, false, "comm"}, {StackWord::user, false, name}}, 10);
  auto svg = graph.svg(titled("t"));
  expect_only_our_tags(svg);
  EXPECT_EQ(boxes(svg).size(), names.size() + 2);
  EXPECT_EQ(box(svg, "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;").value, 10u);
  EXPECT_EQ(box(svg, "\\x1b[2J\\x07\\x0d\\x0a\\x09").value, 10u);
  EXPECT_EQ(box(svg, std::string(FlameGraph::kLongestName, 'x')).value, 10u);
  std::mt19937 random(3);
  for (int round = 0; round < 200; round++) {
    FlameGraph any;
    for (int i = 0; i < 20; i++) {
      std::string name;
      for (auto n = random() % 12; n; n--) name += static_cast<char>(random());
      any.add(user({name, "<\"" + name}), 1 + random() % 9);
    }
    expect_only_our_tags(any.svg(titled("t")));
    if (HasFatalFailure()) return;
  }
}

TEST(FlameGraph, LongNamesAreCutBetweenCharacters) {
  std::string name(FlameGraph::kLongestName - 1, 'x');
  EXPECT_EQ(box(drawn({name + "\xe6\x97\xa5"}), name).value, 1u);
}

TEST(FlameGraph, LabelsFitTheirBoxes) {
  FlameGraph graph;
  std::string wide = "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e";  // three letters, each two columns
  graph.add(user({"abcdefghijklmnopqrstuvwxyz"}), 5);
  graph.add(user({wide + wide + wide + wide}), 5);
  graph.add(user({"z"}), 990);
  auto svg = graph.svg(titled("t"));
  // 0.5 % are 5.9 pixels: no letter; 100 % are wide enough.
  EXPECT_EQ(svg.find(">abc"), svg.find(">abcdefghijklmnopqrstuvwxyz\n")) << "only in the title";
  EXPECT_TRUE(says(svg, ">z</text>"));
  FlameGraph half;
  half.add(user({std::string(300, 'q')}), 1);
  half.add(user({wide + std::string(300, 'q')}), 1);
  auto cut = half.svg(titled("t"));
  auto label = between(cut, "<text x=\"3\" y=\"12\">q", "</text>");
  EXPECT_TRUE(label.ends_with("q\xe2\x80\xa6")) << label;
  // 590 pixels at 7.25, minus the margins: 80 letters, the last one the ellipsis.
  EXPECT_EQ(label.size(), 78u + 3);
  auto other = between(cut, "<text x=\"3\" y=\"12\">\xe6", "</text>");
  EXPECT_EQ(other.size(), 8u + 80 - 6 - 1 + 3);
}

TEST(FlameGraph, NarrowFramesAreCountedNotDrawn) {
  FlameGraph graph;
  graph.add(user({"wide"}), 1'000'000);
  for (int i = 0; i < 7; i++) graph.add(user({"narrow" + std::to_string(i), "leaf"}), 1);
  auto svg = graph.svg(titled("t"));
  EXPECT_EQ(boxes(svg).size(), 2u);
  EXPECT_TRUE(says(svg, "14 frames narrower")) << between(svg, "total:", "<");
  EXPECT_EQ(box(svg, "all").value, 1'000'007u) << "their time still counts";
}

/// Sums, positions and order are consistent.
void expect_consistent(const std::string& svg, bool complete) {
  auto all = boxes(svg);
  std::map<int, double> end;  // right end of the boxes in each row
  std::vector<Box> below;
  std::vector<std::uint64_t> above;  // sums of the children of frames in `below`
  auto close = [&] {
    EXPECT_LE(above.back(), below.back().value) << below.back().name;
    above.pop_back();
    below.pop_back();
  };
  for (auto& b : all) {
    ASSERT_GE(b.x, end[b.y] - 1e-6) << b.name << " overlaps";
    end[b.y] = b.x + b.width;
    ASSERT_NEAR(b.width, 100.0 * static_cast<double>(b.value) / static_cast<double>(all[0].value),
                1e-6);
    while (!below.empty() && below.back().y <= b.y) close();
    if (!below.empty()) {
      auto& parent = below.back();
      ASSERT_GE(b.x, parent.x - 1e-6);
      ASSERT_LE(b.x + b.width, parent.x + parent.width + 1e-6);
      above.back() += b.value;
    }
    below.push_back(b);
    above.push_back(0);
  }
  while (!below.empty()) close();
  EXPECT_EQ(svg.find("left out") == svg.npos, complete);
}

TEST(FlameGraph, RandomTreesAreConsistentAndDoNotDependOnOrder) {
  std::mt19937 random(11);
  for (int round = 0; round < 30; round++) {
    std::vector<std::pair<Words, std::uint64_t>> stacks;
    for (int i = 0; i < 60; i++) {
      Words names;
      for (auto depth = random() % 9; depth; depth--)
        names.push_back(std::string(1, static_cast<char>('a' + random() % 4)));
      stacks.emplace_back(names, 1 + random() % 100);
    }
    auto draw = [&] {
      FlameGraph graph;
      for (auto& [names, value] : stacks) {
        graph.add(user(names), value);
      }
      return graph.svg(titled("t"));
    };
    auto one = draw();
    std::shuffle(stacks.begin(), stacks.end(), random);
    ASSERT_EQ(one, draw());
    expect_consistent(one, true);
    if (HasFailure()) return;
  }
}

TEST(FlameGraph, HundredThousandStacks) {
  std::mt19937 random(5);
  Words names;
  for (int i = 0; i < 40; i++) names.push_back("namespace::function_" + std::to_string(i));
  FlameGraph graph;
  std::uint64_t total = 0;
  Path path(20);
  for (int i = 0; i < 100'000; i++) {
    auto turns = random();  // one of two callees in each frame
    for (std::size_t d = 0; d < path.size(); d++)
      path[d] = {StackWord::user, false, names[2 * d + (turns >> d & 1)]};
    graph.add(path, i % 50);
    total += static_cast<std::uint64_t>(i) % 50;
  }
  auto svg = graph.svg(titled("t"));
  EXPECT_EQ(box(svg, "all").value, total);
  EXPECT_LT(svg.size(), 64u << 20);
  EXPECT_GT(boxes(svg).size(), 1000u);
  expect_consistent(svg, false);
}

// Nine tasks with a kernel and a user stack of 127 frames each.
TEST(FlameGraph, DeepStacks) {
  Words names;
  for (int i = 0; i < 9 * 256; i++) names.push_back("f" + std::to_string(i));
  Path path;
  for (auto& n : names) path.push_back({StackWord::kernel, true, n});
  FlameGraph graph;
  graph.add(path, 3);
  auto svg = graph.svg(titled("t"));
  EXPECT_EQ(boxes(svg).size(), names.size() + 1);
  EXPECT_EQ(box(svg, "f2303").y, 0) << "the top row is within the picture";
}

TEST(FlameGraph, MemoryIsBounded) {
  constexpr auto kMost = FlameGraph::kMostFrames;
  FlameGraph graph;
  graph.add(user({"known", "frames"}), kMost);
  std::string name;
  for (std::uint32_t i = 0; i < kMost; i++) {
    name.assign(reinterpret_cast<const char*>(&i), sizeof i);
    graph.add(user({name}), 1);
  }
  graph.add(user({"known", "frames", "and more"}), kMost);
  auto svg = graph.svg(titled("t"));
  EXPECT_TRUE(says(svg, ">4 stacks are cut")) << "the root, two frames, the last stack";
  EXPECT_EQ(box(svg, "all").value, 3 * kMost) << "all of it counts";
  EXPECT_EQ(box(svg, "frames").value, 2 * kMost);
}

// The parts that every file has.
TEST(FlameGraph, ScriptAndStyle) {
  std::string_view script = kFlameScript, style = kFlameStyle, shared = kPictureScript;
  EXPECT_LT(script.size() + shared.size(), 10u << 10);
  for (auto text : {script, style, shared, std::string_view(kPictureStyle)}) {
    EXPECT_EQ(text.find("]]>"), text.npos) << "it would end its CDATA";
    // No external resources, and no path from text to markup or code.
    for (auto word : {"http", "//www", "url(", "@import", "href", "src", "fetch(", "XMLHttp",
                      "import(", "innerHTML", "outerHTML", "insertAdjacent", "document.write",
                      "eval(", "Function(", "DOMParser", "setTimeout"})
      EXPECT_EQ(text.find(word), text.npos) << word;
  }
}

TEST(FlameGraph, RefersToNothingOutside) {
  auto svg = drawn({"main"});
  WordSet found;
  for (auto at = svg.find("http"); at != svg.npos; at = svg.find("http", at + 1))
    found.insert(svg.substr(at, svg.find('"', at) - at));
  EXPECT_EQ(found, (WordSet{"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"}))
      << "the names of the two languages";
  EXPECT_EQ(svg.find("href"), svg.npos);
}

}  // namespace
}  // namespace coretap
