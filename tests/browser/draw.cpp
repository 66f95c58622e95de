// Draws the graphs described on standard input, for the browser tests; each part ends with a NUL. A
// flame graph: TITLE, or "colours", their meaning, and TITLE; then stacks: VALUE, then frames,
// each a unit separator (0x1f), its kind and its name. A heat map: "heatmap", TITLE, then columns:
// a time, then its values: a unit separator and SLOT, COUNT, NAME, with unit separators between
// them.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coretap/symbols.hpp"
#include "reports/heatmap.hpp"
#include "stacks/flamegraph.hpp"

using namespace coretap;

namespace {

std::string_view next(std::string_view& from, char end) {
  auto part = from.substr(0, from.find(end));
  from.remove_prefix(std::min(from.size(), part.size() + 1));
  return part;
}

/// "u": user; "wk": a waker's kernel frame; "pFILE!NAME": a program's, "l" a library's, "j"
/// compiled at run time, "i" inlined; "s0": the first of the states.
StackWord frame(std::string_view word) {
  static std::deque<FramePlace> places;
  static const auto program =
      std::make_shared<const CodeFile>(CodeFile{.path = {}, .program = true});
  static const auto library = std::make_shared<const CodeFile>();
  StackWord f;
  if (word.starts_with('w')) {
    f.waker = true;
    word.remove_prefix(1);
  }
  const auto kind = word.substr(0, 1);
  if (!kind.empty() && std::string_view("plji").find(kind) != std::string_view::npos) {
    word.remove_prefix(1);
    auto& place = places.emplace_back();
    place.object = next(word, '!');
    place.compiled = kind == "j";
    place.inlined = kind == "i";
    place.file = kind == "p" ? program : library;
    if (kind == "p" || kind == "l") place.at = 0;
    f.kind = StackWord::user;
    f.place = &place;
    f.text = place.function = word;
    return f;
  }
  if (kind == "s") {
    f.kind = static_cast<StackWord::Kind>(StackWord::cpu + (word[1] - '0'));
    word.remove_prefix(1);
  }
  if (kind == "u") f.kind = StackWord::user;
  if (kind == "k") f.kind = StackWord::kernel;
  if (kind == "m") f.kind = StackWord::mark;
  f.text = word.substr(std::min<std::size_t>(1, word.size()));
  return f;
}

std::string flame_graph(std::string title, std::string_view rest) {
  using By = FlameGraph::ColourBy;
  auto by = By::code;
  if (title == "colours") {
    auto word = next(rest, '\0');
    by = word == "object" ? By::object : word == "name" ? By::name : By::code;
    title = next(rest, '\0');
  }
  FlameGraph graph(1, by);
  while (!rest.empty()) {
    auto line = next(rest, '\0');
    auto value = std::stoull(std::string(next(line, '\x1f')));
    std::vector<StackWord> path;
    while (!line.empty()) path.push_back(frame(next(line, '\x1f')));
    graph.add(path, value);
  }
  return graph.svg({std::move(title), "samples", {"a note"}});
}

std::string heat_map(std::string title, std::string_view rest) {
  HeatMap map{HistogramScale{}};
  while (!rest.empty()) {
    auto line = next(rest, '\0');
    if (!line.starts_with('\x1f')) {
      map.begin_column(std::string(line));
      continue;
    }
    line.remove_prefix(1);
    auto slot = std::stoul(std::string(next(line, '\x1f')));
    hist h{};
    h.slots[slot] = std::stoull(std::string(next(line, '\x1f')));
    map.add(line, h);
  }
  return map.svg({std::move(title), "values", {"a note"}});
}

}  // namespace

int main() {
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  std::string_view rest = text;
  std::string title(next(rest, '\0'));
  std::string svg;
  if (title == "heatmap") {
    title = next(rest, '\0');
    svg = heat_map(std::move(title), rest);
  } else {
    svg = flame_graph(std::move(title), rest);
  }
  fwrite(svg.data(), 1, svg.size(), stdout);
  return 0;
}
