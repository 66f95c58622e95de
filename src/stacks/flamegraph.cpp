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

// Pixels, as those of every picture.
constexpr int kWidth = kPictureWidth, kMargin = kPictureMargin, kLine = kPictureLine, kRow = 17,
              kBox = 16;
constexpr double kLetter = kPictureLetter;
constexpr double kNarrowest = 0.1;
constexpr int kInner = kWidth - 2 * kMargin;

constexpr unsigned kShades = 6;
struct Palette {
  const char* style;
  const char* meaning;
  int hue, saturation, lightness;  ///< of the darkest shade
};
// The hues that flame graphs commonly have: green for JIT-compiled code, aqua for inlined, yellow
// and red for other user code, pink for interpreted code, orange for the kernel. Lightness
// separates them for the colour-blind. States are dark, with white letters.
constexpr Palette kPalettes[] = {
    {"t", "task", 50, 25, 88},
    {"u", "user", 3, 76, 79},
    {"k", "kernel", 31, 100, 57},
    {"m", "mark", 223, 26, 58},
    {"sc", "CPU", 4, 72, 36},
    {"sq", "queue", 28, 92, 26},
    {"sl", "limit", 340, 80, 30},
    {"sd", "disk", 222, 70, 36},
    {"sm", "memory", 280, 50, 38},
    {"sk", "lock", 52, 90, 18},
    {"sp", "peer", 150, 55, 20},
    {"sw", "work", 0, 0, 30},
    {"so", "other", 185, 20, 32},
    {"wt", "waker", 276, 14, 72},
    {"wu", "waker's user", 288, 57, 75},
    {"wk", "waker's kernel", 270, 62, 66},
    {"p", "program", 6, 90, 61},
    {"l", "library", 50, 80, 69},
    {"j", "JIT-compiled", 140, 61, 42},
    {"i", "inlined", 193, 100, 84},
    {"y", "interpreted", 325, 60, 70},
};
// The last ones are in the order of FrameCode.
constexpr std::size_t kWakers = StackWord::other + 1, kCodes = kWakers + 3;
static_assert(kCodes + 5 == std::size(kPalettes));
constexpr std::size_t kOthers = kWakers;  // of objects without a colour
// Of the largest objects.
constexpr std::size_t kObjects[] = {kCodes,      kCodes + 1,        kCodes + 2,
                                    kCodes + 3,  StackWord::kernel, kWakers + 2,
                                    kWakers + 1, StackWord::user};
constexpr unsigned kNameColours = 24;
constexpr std::size_t kMostObjects = 4096, kLongestObject = 40;

bool is_frame(StackWord::Kind kind) { return kind == StackWord::user || kind == StackWord::kernel; }
bool is_state(std::size_t palette) { return palette > StackWord::mark && palette < kWakers; }

std::size_t palette_of(StackWord::Kind kind, bool waker, FrameCode code) {
  if (waker && kind < StackWord::mark) return kWakers + kind;
  if (kind != StackWord::user || code == FrameCode::unknown || code == FrameCode::kernel)
    return kind;
  return kCodes + static_cast<std::size_t>(code) - static_cast<std::size_t>(FrameCode::program);
}

/// A name has the same shade in all graphs.
unsigned shade_of(std::string_view name, unsigned shades = kShades) {
  return (fnv1a(name) >> 16) % shades;
}

/// The places of names when they are sorted.
std::vector<std::uint32_t> ranks(const std::vector<std::string_view>& names) {
  std::vector<std::uint32_t> sorted(names.size()), rank(names.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  std::sort(sorted.begin(), sorted.end(), [&](auto a, auto b) { return names[a] < names[b]; });
  for (std::uint32_t i = 0; i < names.size(); i++) rank[sorted[i]] = i;
  return rank;
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

using Legend = std::vector<std::pair<std::string, std::string>>;

/// Styles and their meanings, from this line on; the script moves them. The number of lines.
int put_legend(std::string& out, const Legend& legend, int y) {
  int lines = 1;
  double x = kMargin;
  for (auto& [style, meaning] : legend) {
    auto words = printable(meaning);
    auto width = 17 + static_cast<double>(words.size() + 2) * kLetter;
    if (x > kMargin && x + width > kWidth) {
      x = kMargin;
      lines++;
    }
    put(out,
        "<g class=\"key\" transform=\"translate({:.0f} {})\"><rect class=\"{}\" y=\"-10\" "
        "width=\"12\" height=\"12\" rx=\"2\"/><text class=\"ink\" x=\"17\">{}</text></g>\n",
        x, y + kLine * (lines - 1), style, xml_text(words));
    x += words.empty() ? 15 : width;
  }
  return lines;
}

}  // namespace

/// The layout: children ordered by name, sums, and the number of frames too narrow to draw.
struct FlameGraph::Tree {
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

  std::vector<std::string_view> names;
  names.reserve(graph.names_.size());
  for (auto* name : graph.names_) names.emplace_back(*name);
  const auto rank = ranks(names);

  // The children of the first node, then of the second one, ...; the last name first, as they are
  // popped from a stack.
  std::vector<std::uint32_t> children(count - 1), first(count + 1);
  std::iota(children.begin(), children.end(), 1U);
  // The numbers of objects depend on the order in which they came.
  const bool by_object = graph.colour_by_ == ColourBy::object;
  const auto object = ranks({graph.objects_.begin(), graph.objects_.end()});
  auto place = [&](std::uint32_t i) {
    auto& n = nodes[i];
    return std::tuple(n.parent, ~rank[n.name], n.kind, n.waker,
                      by_object ? object[n.part] : n.part);
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

/// The styles of frames, those that occur, and their legend.
struct FlameGraph::Colours {
  Colours(const FlameGraph& graph, const Tree& tree);

  std::string style(const Node& node, std::string_view name) const;
  Legend legend() const;
  void put(std::string& out) const;

 private:
  void choose_objects(const Tree& tree);
  bool is_named(const Node& node) const {
    return graph_.colour_by_ == ColourBy::name && is_frame(node.kind);
  }
  std::size_t palette(const Node& node) const;

  const FlameGraph& graph_;
  bool used_[std::size(kPalettes)] = {}, names_ = false;
  std::vector<std::size_t> objects_;  ///< palettes, by number
};

FlameGraph::Colours::Colours(const FlameGraph& graph, const Tree& tree) : graph_(graph) {
  if (graph.colour_by_ == ColourBy::object) choose_objects(tree);
  for (auto& box : tree.boxes) {
    auto& node = graph.nodes_[box.node];
    if (is_named(node))
      names_ = true;
    else if (box.node)
      used_[palette(node)] = true;
  }
}

void FlameGraph::Colours::choose_objects(const Tree& tree) {
  // The largest are those of which most is seen.
  std::vector<std::uint64_t> area(graph_.objects_.size());
  for (auto& box : tree.boxes) area[graph_.nodes_[box.node].part] += tree.sum[box.node];
  area[0] = 0;
  objects_.resize(area.size(), kOthers);
  for (auto palette : kObjects) {
    std::size_t most = 0;
    for (std::size_t i = 1; i < area.size(); i++)
      if (area[i] > area[most] ||
          (area[i] && area[i] == area[most] && graph_.objects_[i] < graph_.objects_[most]))
        most = i;
    if (!most) break;
    objects_[most] = palette;
    area[most] = 0;
  }
}

std::size_t FlameGraph::Colours::palette(const Node& node) const {
  if (is_frame(node.kind) && !objects_.empty()) return objects_[node.part];
  auto code =
      graph_.colour_by_ == ColourBy::code ? static_cast<FrameCode>(node.part) : FrameCode::unknown;
  return palette_of(node.kind, node.waker, code);
}

std::string FlameGraph::Colours::style(const Node& node, std::string_view name) const {
  if (is_named(node)) return fmt::format("n{}", shade_of(name, kNameColours));
  return fmt::format("{}{}", kPalettes[palette(node)].style, shade_of(name));
}

Legend FlameGraph::Colours::legend() const {
  Legend all;
  auto add = [&](std::size_t palette, std::string_view meaning) {
    if (used_[palette]) all.emplace_back(fmt::format("{}2", kPalettes[palette].style), meaning);
  };
  const bool by_object = !objects_.empty();
  auto is_own = [&](std::size_t palette) {
    return !by_object || palette == StackWord::task || palette == StackWord::mark ||
           is_state(palette);
  };
  // Kinds of user code are side by side.
  auto some = [&](std::size_t from, std::size_t to) {
    for (auto i = from; i < to; i++)
      if (is_own(i)) add(i, kPalettes[i].meaning);
  };
  some(0, StackWord::kernel);
  some(kCodes, std::size(kPalettes));
  some(StackWord::kernel, kCodes);
  if (by_object) {
    for (auto palette : kObjects) {
      auto of = std::ranges::find(objects_, palette);
      if (of != objects_.end())
        add(palette, graph_.objects_[static_cast<std::size_t>(of - objects_.begin())]);
    }
    add(kOthers, std::ranges::count(objects_, kOthers) > 1 ? "other files, wakers" : "waker");
  }
  if (names_)
    for (auto [style, meaning] : {std::pair{"n2", ""}, {"n9", ""}, {"n16", "functions, by name"}})
      all.emplace_back(style, meaning);
  return all;
}

void FlameGraph::Colours::put(std::string& out) const {
  for (std::size_t i = 0; i < std::size(kPalettes); i++) {
    auto& p = kPalettes[i];
    if (!used_[i]) continue;
    for (unsigned shade = 0; shade < kShades; shade++)
      coretap::put(out, ".{}{} {{ fill: hsl({},{}%,{}%); }}\n", p.style, shade, p.hue + shade,
                   p.saturation, p.lightness + shade);
    if (is_state(i)) coretap::put(out, ".f > [class^={}] + text {{ fill: #fff; }}\n", p.style);
  }
  if (!names_) return;
  for (unsigned i = 0; i < kNameColours; i++)
    coretap::put(out, ".n{} {{ fill: hsl({},90%,{}%); }}\n", i, 5 + 55 * i / kNameColours,
                 62 + 7 * i % 16);
}

/// Distinguishes colours of frames that are of the same kind.
std::uint16_t FlameGraph::part_of(const StackWord& frame) {
  if (colour_by_ == ColourBy::code) return static_cast<std::uint16_t>(code_of(frame));
  if (colour_by_ != ColourBy::object || !is_frame(frame.kind)) return 0;
  static const FramePlace kNone;
  auto object = object_of(frame.place ? *frame.place : kNone, frame.kind == StackWord::kernel);
  if (object.empty()) object = "[unknown]";
  auto known = object_numbers_.find(object);
  if (known != object_numbers_.end()) return known->second;
  if (objects_.size() >= kMostObjects) return 0;
  object_numbers_.emplace(object, static_cast<std::uint16_t>(objects_.size()));
  objects_.emplace_back(start_of_name(object, kLongestObject));
  return static_cast<std::uint16_t>(objects_.size() - 1);
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
  const auto part = part_of(frame);
  static_assert(kMostFrames <= 1 << 20 && kMostObjects <= 1 << 12);
  auto key = std::uint64_t{parent} << 40 | std::uint64_t{id->second} << 20 |
             std::uint64_t{part} << 5 | std::uint64_t{frame.kind} << 1 | (frame.waker ? 1U : 0U);
  auto known = children_.find(key);
  if (known != children_.end()) return known->second;
  if (full) return 0;
  auto node = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({parent, id->second, frame.kind, frame.waker, part});
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

void FlameGraph::put_frame(std::string& out, const Tree& tree, const Box& box,
                           const Colours& colours, int rows, const Paint* paint) const {
  auto& node = nodes_[box.node];
  auto name = box.node ? printable(*names_[node.name]) : std::string("all");
  auto width = box.node ? percent(tree.sum[box.node], total_) : 100;
  auto value = tree.sum[box.node] / scale_;
  Paint::Look look;
  std::string style;
  if (paint) {
    look = paint->look(box.node);
    style = look.style;
  } else {
    style = box.node ? colours.style(node, name) : "root";
  }
  auto words = paint ? look.words : fmt::format("{} ({:.2f}%)", grouped(value), width);
  put(out,
      "<svg class=\"f\" x=\"{:.9g}%\" y=\"{}\" width=\"{:.9g}%\" height=\"{}\" data-v=\"{}\">"
      "<title>{}\n{}</title><rect class=\"{}\" width=\"100%\" height=\"100%\"/>",
      percent(box.start, total_), rows - static_cast<int>(box.level + 1) * kRow, width, kBox, value,
      xml_text(name), xml_text(words), style);
  auto columns = (width / 100 * kInner - 6) / kLetter;
  auto shown = cut(name, columns > 0 ? static_cast<std::size_t>(columns) : 0);
  if (!shown.empty()) put(out, "<text x=\"3\" y=\"12\">{}</text>", xml_text(shown));
  out += "</svg>\n";
}

std::string FlameGraph::svg(const PictureTitle& title, const Paint* paint) const {
  Tree tree(*this);
  const Colours colours(*this, tree);
  const auto rows = static_cast<int>(tree.levels) * kRow;

  std::vector<std::string> notes{fmt::format("total: {} {}", grouped(total_ / scale_), title.unit)};
  if (tree.left_out)
    notes.back() += fmt::format("; {} {} narrower than a tenth of a pixel left out",
                                grouped(tree.left_out), tree.left_out == 1 ? "frame" : "frames");
  if (shortened_)
    notes.push_back(fmt::format("{} stacks are cut: there are more than {} different frames",
                                grouped(shortened_), grouped(kMostFrames)));
  notes.insert(notes.end(), title.notes.begin(), title.notes.end());

  std::string head;
  put_titles(head, title, notes);
  int detail = below_titles(notes);
  detail += kLine * put_legend(head, paint ? paint->legend : colours.legend(), detail);
  const int top = detail + 2 * kLine, height = top + rows + kMargin;
  put(head,
      "<g class=\"script live\"><foreignObject x=\"100%\" y=\"8\" width=\"230\" height=\"24\" "
      "transform=\"translate(-{0} 0)\"><input xmlns=\"http://www.w3.org/1999/xhtml\" "
      "type=\"text\" placeholder=\"search (Ctrl-F)\" aria-label=\"search\" spellcheck=\"false\"/>"
      "</foreignObject>\n<text class=\"ink detail\" x=\"{1}\" y=\"{2}\"/>\n"
      "<text class=\"ink found\" x=\"{1}\" y=\"{3}\"/>\n"
      "<text class=\"ink reset\" x=\"100%\" y=\"{3}\" text-anchor=\"end\" role=\"button\" "
      "tabindex=\"0\" visibility=\"hidden\" transform=\"translate(-{1} 0)\">reset zoom</text></g>\n",
      230 + kMargin, kMargin, detail, detail + kLine);

  std::string out;
  out.reserve(64 * 1024 + tree.boxes.size() * 256);
  std::string style;
  put_code(style, kFlameStyle);
  if (paint)
    style += paint->css;
  else
    colours.put(style);
  begin_picture(out, title, height, style);
  put(out,
      "<svg class=\"graph\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" data-unit=\"{}\"{}>\n",
      kMargin, top, kInner, rows, xml_text(title.unit), paint ? " data-words=\"1\"" : "");
  for (auto& box : tree.boxes) put_frame(out, tree, box, colours, rows, paint);
  // Drawn over the frames, so that it stays visible when they are scrolled.
  put(out,
      "</svg>\n<g class=\"head\"><rect class=\"bg\" width=\"100%\" height=\"{}\" fill=\"#fff\"/>\n",
      top - 3);
  out += head;
  out += "</g>\n";

  end_picture(out, kFlameScript);
  return out;
}

}  // namespace coretap
