// Draws a flame graph of stacks from standard input, for the browser tests: TITLE, then stacks,
// each ended by a NUL: VALUE, then frames, each a unit separator (0x1f), its kind and its name.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "stacks/flamegraph.hpp"

using namespace coretap;

namespace {

/// "u": user; "wk": a waker's kernel frame.
StackWord frame(std::string_view word) {
  StackWord f;
  if (word.starts_with('w')) {
    f.waker = true;
    word.remove_prefix(1);
  }
  switch (word.empty() ? ' ' : word[0]) {
    case 'u':
      f.kind = StackWord::user;
      break;
    case 'k':
      f.kind = StackWord::kernel;
      break;
    case 'm':
      f.kind = StackWord::mark;
      break;
    default:
      break;
  }
  f.text = word.substr(std::min<std::size_t>(1, word.size()));
  return f;
}

}  // namespace

int main() {
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  std::string_view rest = text;
  auto next = [](std::string_view& from, char end) {
    auto part = from.substr(0, from.find(end));
    from.remove_prefix(std::min(from.size(), part.size() + 1));
    return part;
  };
  FlameTitle title{std::string(next(rest, '\0')), "samples", {"a note"}};
  FlameGraph graph;
  while (!rest.empty()) {
    auto line = next(rest, '\0');
    auto value = std::stoull(std::string(next(line, '\x1f')));
    std::vector<StackWord> path;
    while (!line.empty()) path.push_back(frame(next(line, '\x1f')));
    graph.add(path, value);
  }
  auto svg = graph.svg(title);
  fwrite(svg.data(), 1, svg.size(), stdout);
  return 0;
}
