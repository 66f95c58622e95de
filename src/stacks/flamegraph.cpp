#include "stacks/flamegraph.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/figures.hpp"
#include "coretap/sanitize.hpp"
#include "stacks/flamegraph_script.hpp"

namespace coretap {

namespace {

// Pixels, until the script fits the picture to the window.
constexpr int kWidth = 1200, kMargin = 10, kRow = 17, kBox = 16;
constexpr int kLine = 18;         // of text above the graph
constexpr double kLetter = 7.25;  // approximate width of a letter
constexpr double kNarrowest = 0.1;
constexpr int kInner = kWidth - 2 * kMargin;

constexpr unsigned kShades = 6;
struct Palette {
  const char* style;
  const char* meaning;
  int hue, saturation, lightness;  ///< of the darkest shade
};
// User code is warm, kernel code is cold; distinguishable with color blindness.
constexpr Palette kPalettes[] = {
    {"t", "task", 45, 8, 76},
    {"u", "user", 26, 90, 62},
    {"k", "kernel", 208, 72, 66},
    {"m", "mark", 54, 75, 74},
    {"sc", "CPU", 4, 72, 60},
    {"sq", "queue", 34, 92, 56},
    {"sl", "limit", 340, 80, 40},
    {"sd", "disk", 222, 70, 56},
    {"sm", "memory", 280, 50, 60},
    {"sk", "lock", 50, 90, 52},
    {"sp", "peer", 140, 45, 52},
    {"sw", "work", 0, 0, 72},
    {"so", "other", 180, 12, 62},
    {"wt", "waker", 320, 14, 80},
    {"wu", "waker's user", 344, 82, 76},
    {"wk", "waker's kernel", 166, 46, 60},
};

std::size_t palette_of(StackWord::Kind kind, bool waker) {
  return kind >= StackWord::mark || !waker ? kind : StackWord::other + 1 + kind;
}

/// A name has the same shade in all graphs.
unsigned shade_of(std::string_view name) { return (fnv1a(name) >> 16) % kShades; }

/// 1234567 as 1,234,567.
std::string grouped(std::uint64_t value) {
  auto digits = std::to_string(value);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<std::size_t>(i), 1, ',');
  return digits;
}

/// The part of a printable name that fits into this many columns; the script does the same.
std::string cut(std::string_view name, std::size_t columns) {
  if (columns < 3) return {};
  std::size_t used = 0, kept = 0, i = 0;
  while (i < name.size()) {
    auto first = static_cast<unsigned char>(name[i]);
    std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    used += first < 0xe1 ? 1 : 2;  // letters from U+1000 on may be twice as wide
    if (used > columns) return std::string(name.substr(0, kept)) + "\xe2\x80\xa6";
    i += length;
    if (used < columns) kept = i;
  }
  return std::string(name);
}

template <class... Arguments>
void put(std::string& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Arguments>(arguments)...);
}

void put_style(std::string& out, std::string_view more) {
  out += "<style><![CDATA[";
  out += kPictureStyle;
  out += kFlameStyle;
  out += more;
  for (auto& p : kPalettes)
    for (unsigned shade = 0; shade < kShades; shade++)
      put(out, ".{}{} {{ fill: hsl({},{}%,{}%); }}\n", p.style, shade, p.hue + 3 * shade,
          p.saturation, p.lightness + 2 * shade);
  out += "]]></style>\n";
}

using Legend = std::vector<std::pair<std::string_view, std::string_view>>;

/// Styles and their meanings.
void put_legend(std::string& out, const Legend& legend, int y) {
  double x = kMargin;
  for (auto& [style, meaning] : legend) {
    put(out,
        "<rect class=\"{}\" x=\"{:.0f}\" y=\"{}\" width=\"12\" height=\"12\" rx=\"2\"/>"
        "<text class=\"ink\" x=\"{:.0f}\" y=\"{}\">{}</text>\n",
        style, x, y - 10, x + 17, y, xml_text(meaning));
    x += 17 + static_cast<double>(meaning.size() + 2) * kLetter;
  }
}

}  // namespace

/// The layout: children ordered by name, sums, and the number of frames too narrow to draw.
struct FlameGraph::Tree {
  struct Box {
    std::uint32_t node, level;
    std::uint64_t start;
  };

  explicit Tree(const FlameGraph& graph);

  std::vector<std::uint64_t> sum;  ///< of each node and its descendants
  std::vector<Box> boxes;          ///< parents first, each followed by its descendants
  std::uint64_t left_out = 0;
  std::uint32_t levels = 1;
};

FlameGraph::Tree::Tree(const FlameGraph& graph) {
  auto& nodes = graph.nodes_;
  auto count = static_cast<std::uint32_t>(nodes.size());
  std::vector<std::uint32_t> size(count, 1);
  for (auto& n : nodes) sum.push_back(n.own);
  for (auto i = count; --i > 0;) {
    sum[nodes[i].parent] += sum[i];
    size[nodes[i].parent] += size[i];
  }

  std::vector<std::uint32_t> by_name(graph.names_.size()), rank(graph.names_.size());
  std::iota(by_name.begin(), by_name.end(), 0U);
  std::sort(by_name.begin(), by_name.end(),
            [&](auto a, auto b) { return *graph.names_[a] < *graph.names_[b]; });
  for (std::uint32_t i = 0; i < by_name.size(); i++) rank[by_name[i]] = i;

  // The children of the first node, then of the second one, ...; the last name first, as they are
  // popped from a stack.
  std::vector<std::uint32_t> children(count - 1), first(count + 1);
  std::iota(children.begin(), children.end(), 1U);
  auto place = [&](std::uint32_t i) {
    auto& n = nodes[i];
    return std::tuple(n.parent, ~rank[n.name], n.kind, n.waker);
  };
  std::sort(children.begin(), children.end(), [&](auto a, auto b) { return place(a) < place(b); });
  for (auto child : children) first[nodes[child].parent + 1]++;
  std::partial_sum(first.begin(), first.end(), first.begin());

  auto narrowest = static_cast<double>(sum[0]) * kNarrowest / kInner;
  std::vector<Box> waiting{{0, 0, 0}};
  while (!waiting.empty()) {
    auto box = waiting.back();
    waiting.pop_back();
    boxes.push_back(box);
    levels = std::max(levels, box.level + 1);
    auto begin = first[box.node], end = first[box.node + 1];
    auto start = box.start;
    for (auto i = begin; i < end; i++) start += sum[children[i]];
    // A frame's own value is drawn after its children.
    for (auto i = begin; i < end; i++) {
      auto child = children[i];
      start -= sum[child];
      if (sum[child] && static_cast<double>(sum[child]) >= narrowest)
        waiting.push_back({child, box.level + 1, start});
      else
        left_out += size[child];
    }
  }
}

std::uint32_t FlameGraph::child(std::uint32_t parent, const StackWord& frame) {
  bool full = nodes_.size() >= kMostFrames || name_bytes_ >= kMostNameBytes;
  std::string name(start_of_name(frame.text, kLongestName));
  auto id = ids_.find(name);
  if (id == ids_.end()) {
    if (full) return 0;
    id = ids_.emplace(std::move(name), static_cast<std::uint32_t>(ids_.size())).first;
    names_.push_back(&id->first);
    name_bytes_ += id->first.size();
  }
  auto key = static_cast<std::uint64_t>(parent) << 32 | id->second << 5 |
             static_cast<std::uint32_t>(frame.kind) << 1 | (frame.waker ? 1U : 0U);
  auto known = children_.find(key);
  if (known != children_.end()) return known->second;
  if (full) return 0;
  auto node = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({parent, id->second, frame.kind, frame.waker});
  children_.emplace(key, node);
  return node;
}

void FlameGraph::add(std::span<const StackWord> path, std::uint64_t value) {
  std::uint32_t node = 0;
  for (auto& frame : path) {
    auto next = child(node, frame);
    if (!next) {
      shortened_++;
      break;
    }
    node = next;
  }
  add_to(node, value);
}

void FlameGraph::add_to(std::uint32_t frame, std::uint64_t value) {
  nodes_[frame].own += value;
  total_ += value;
}

void FlameGraph::walk(bool sorted, const std::function<bool(const Branch&)>& enter) const {
  std::vector<std::uint64_t> sum;
  sum.reserve(nodes_.size());
  for (auto& n : nodes_) sum.push_back(n.own);
  std::vector<std::vector<std::uint32_t>> children(nodes_.size());
  for (auto i = nodes_.size(); --i > 0;) {
    sum[nodes_[i].parent] += sum[i];
    children[nodes_[i].parent].push_back(static_cast<std::uint32_t>(i));
  }
  // The smallest first, as they are popped from a stack.
  auto smaller = [&](auto a, auto b) {
    return sum[a] != sum[b] ? sum[a] < sum[b] : *names_[nodes_[a].name] > *names_[nodes_[b].name];
  };
  std::vector<std::pair<std::uint32_t, std::uint32_t>> waiting;  // nodes and levels
  auto wait = [&](std::uint32_t node, std::uint32_t level) {
    if (sorted) std::ranges::sort(children[node], smaller);
    for (auto child : children[node]) waiting.emplace_back(child, level);
  };
  wait(0, 0);
  while (!waiting.empty()) {
    auto [node, level] = waiting.back();
    waiting.pop_back();
    auto& n = nodes_[node];
    if (enter({level, *names_[n.name], n.kind, n.own, sum[node]})) wait(node, level + 1);
  }
}

std::string FlameGraph::svg(const PictureTitle& title, const Paint* paint) const {
  Tree tree(*this);
  bool used[std::size(kPalettes)] = {};
  for (auto& box : tree.boxes)
    if (box.node) used[palette_of(nodes_[box.node].kind, nodes_[box.node].waker)] = true;

  Legend legend_of;
  std::vector<std::string> styles;  // of the legend
  styles.reserve(std::size(kPalettes));
  if (paint) {
    legend_of = paint->legend;
  } else {
    for (std::size_t i = 0; i < std::size(kPalettes); i++)
      if (used[i])
        legend_of.emplace_back(styles.emplace_back(std::string(kPalettes[i].style) + '2'),
                               kPalettes[i].meaning);
  }

  std::vector<std::string> notes{fmt::format("total: {} {}", grouped(total_ / scale_), title.unit)};
  if (tree.left_out)
    notes.back() += fmt::format("; {} {} narrower than a tenth of a pixel left out",
                                grouped(tree.left_out), tree.left_out == 1 ? "frame" : "frames");
  if (shortened_)
    notes.push_back(fmt::format("{} stacks are cut: there are more than {} different frames",
                                grouped(shortened_), grouped(kMostFrames)));
  notes.insert(notes.end(), title.notes.begin(), title.notes.end());

  auto lines = static_cast<int>(notes.size());
  int legend = 28 + kLine * (lines + 1), head = legend + 2 * kLine;
  int rows = static_cast<int>(tree.levels) * kRow, height = head + rows + kMargin;

  std::string out;
  out.reserve(64 * 1024 + tree.boxes.size() * 256);
  put(out,
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\">\n<title>{2}</title>\n",
      kWidth, height, xml_text(title.title));
  put_style(out, paint ? paint->css : std::string_view());
  put(out, "<rect class=\"bg\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");

  put(out,
      "<svg class=\"graph\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" data-unit=\"{}\"{}>\n",
      kMargin, head, kInner, rows, xml_text(title.unit), paint ? " data-words=\"1\"" : "");
  for (auto& box : tree.boxes) {
    auto& node = nodes_[box.node];
    auto name = box.node ? printable(*names_[node.name]) : std::string("all");
    auto width = box.node ? percent(tree.sum[box.node], total_) : 100;
    auto value = tree.sum[box.node] / scale_;
    FlameGraph::Paint::Look look;
    if (paint) look = paint->look(box.node);
    auto style =
        paint
            ? std::string(look.style)
            : fmt::format("{}{}", kPalettes[box.node ? palette_of(node.kind, node.waker) : 0].style,
                          shade_of(name));
    auto words = paint ? look.words : fmt::format("{} ({:.2f}%)", grouped(value), width);
    put(out,
        "<svg class=\"f\" x=\"{:.9g}%\" y=\"{}\" width=\"{:.9g}%\" height=\"{}\" data-v=\"{}\">"
        "<title>{}\n{}</title><rect class=\"{}\" width=\"100%\" height=\"100%\"/>",
        percent(box.start, total_), rows - static_cast<int>(box.level + 1) * kRow, width, kBox,
        value, xml_text(name), xml_text(words), style);
    auto columns = (width / 100 * kInner - 6) / kLetter;
    auto shown = cut(name, columns > 0 ? static_cast<std::size_t>(columns) : 0);
    if (!shown.empty()) put(out, "<text x=\"3\" y=\"12\">{}</text>", xml_text(shown));
    out += "</svg>\n";
  }
  out += "</svg>\n";

  // Drawn over the frames, so that it stays visible when they are scrolled.
  put(out, "<g class=\"head\"><rect class=\"bg\" width=\"100%\" height=\"{}\" fill=\"#fff\"/>\n",
      head - 3);
  put(out,
      "<svg class=\"left\" width=\"{}\" height=\"32\"><text class=\"ink title\" x=\"{}\" "
      "y=\"24\">{}</text></svg>\n",
      kWidth - 260, kMargin, xml_text(title.title));
  for (int i = 0; i < lines; i++)
    put(out, "<text class=\"dim\" x=\"{}\" y=\"{}\">{}</text>\n", kMargin, 28 + kLine * (i + 1),
        xml_text(notes[static_cast<std::size_t>(i)]));
  put_legend(out, legend_of, legend);
  put(out,
      "<g class=\"script\"><foreignObject x=\"100%\" y=\"8\" width=\"230\" height=\"24\" "
      "transform=\"translate(-{0} 0)\"><input xmlns=\"http://www.w3.org/1999/xhtml\" "
      "type=\"text\" placeholder=\"search (Ctrl-F)\" aria-label=\"search\" spellcheck=\"false\"/>"
      "</foreignObject>\n"
      "<text class=\"ink found\" x=\"100%\" y=\"{1}\" text-anchor=\"end\" "
      "transform=\"translate(-{2} 0)\"/>\n"
      "<svg class=\"left\" y=\"{3}\" width=\"{4}\" height=\"{5}\">"
      "<text class=\"ink detail\" x=\"{2}\" y=\"13\"/></svg>\n"
      "<text class=\"ink reset\" x=\"100%\" y=\"{6}\" text-anchor=\"end\" role=\"button\" "
      "tabindex=\"0\" visibility=\"hidden\" transform=\"translate(-{2} 0)\">reset zoom</text></g>\n"
      "</g>\n",
      230 + kMargin, legend, kMargin, legend + kLine - 13, kWidth - 260, kLine, legend + kLine);

  out += "<script><![CDATA[";
  out += kFlameScript;
  out += "]]></script>\n</svg>\n";
  return out;
}

}  // namespace coretap
