#include "stacks/stack_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "stacks/flamegraph.hpp"

namespace coretap {

namespace {

constexpr std::size_t kParts = 3;      // whose spread is that of a run without changes
constexpr double kSpreads = 3;         // of the parts
constexpr double kErrors = 5;          // standard errors
constexpr double kLeastShare = 0.005;  // of all time: smaller changes are not of interest
constexpr int kDepths = 6;             // of red and blue

constexpr std::string_view kCss = R"css(
.more1 { fill: #f6d5cf; } .more2 { fill: #f3b5aa; } .more3 { fill: #ee9384; }
.more4 { fill: #e66f5e; } .more5 { fill: #d03a2a; } .more6 { fill: #c2251a; }
.less1 { fill: #d3e0f3; } .less2 { fill: #b0c9ec; } .less3 { fill: #8bb0e4; }
.less4 { fill: #6696da; } .less5 { fill: #3a70c0; } .less6 { fill: #2560b4; }
.same { fill: #d9d9d6; }
.gone1, .gone2, .gone3, .gone4, .gone5, .gone6, .gone { stroke: #333; stroke-width: 1.2px;
  stroke-dasharray: 4 3; }
.gone1 { fill: #d3e0f3; } .gone2 { fill: #b0c9ec; } .gone3 { fill: #8bb0e4; }
.gone4 { fill: #6696da; } .gone5 { fill: #3a70c0; } .gone6 { fill: #2560b4; }
.gone { fill: #d9d9d6; }
.more5 + text, .more6 + text, .less5 + text, .less6 + text, .gone5 + text, .gone6 + text {
  fill: #fff; }
)css";

constexpr std::string_view kStyles[3][kDepths] = {
    {"more1", "more2", "more3", "more4", "more5", "more6"},
    {"less1", "less2", "less3", "less4", "less5", "less6"},
    {"gone1", "gone2", "gone3", "gone4", "gone5", "gone6"}};

bool above_noise(double before, double now, double noise) { return std::abs(now - before) > noise; }

}  // namespace

std::string_view difference_css() { return kCss; }

std::string_view difference_style(double change, bool gone) {
  const auto depth =
      std::clamp(static_cast<int>(std::ceil(kDepths * std::abs(change))), 1, kDepths);
  return kStyles[gone ? 2 : change > 0 ? 0 : 1][depth - 1];
}

std::string per_second(double ns) {
  auto size = std::abs(ns);
  if (size >= 1e7) return fmt::format("{:.1f} ms/s", ns / 1e6);
  if (size >= 1e6) return fmt::format("{:.2f} ms/s", ns / 1e6);
  if (size >= 1e4) return fmt::format("{:.1f} us/s", ns / 1e3);
  return fmt::format("{:.2f} us/s", ns / 1e3);
}

void StackComparison::Cell::add(const Cell& more) {
  before += more.before;
  variance += more.variance;
  now += more.now;
  for (std::size_t i = 0; i < kMostSlices; i++) slices[i] += more.slices[i];
}

StackComparison::StackComparison(std::vector<double> slices, double lasted)
    : slices_(std::move(slices)), length_(std::accumulate(slices_.begin(), slices_.end(), 0.0)) {
  if (slices_.size() > kMostSlices) slices_.resize(kMostSlices);
  if (lasted > 0 && length_ > 0) ratio_ = std::clamp(length_ / lasted, 0.01, 100.0);
}

template <class Add>
void StackComparison::add(const Stack& stack, const Add& add) {
  std::uint32_t node = 0;
  for (auto& word : stack.path) {
    auto [id, is_new_name] = ids_.try_emplace(word, static_cast<std::uint32_t>(names_.size()));
    if (is_new_name) names_.push_back(word);
    auto key = static_cast<std::uint64_t>(node) << 32 | id->second;
    auto known = children_.find(key);
    if (known == children_.end()) {
      if (nodes_.size() >= kMostFrames) {
        cut_++;
        break;
      }
      known = children_.emplace(key, static_cast<std::uint32_t>(nodes_.size())).first;
      nodes_.push_back({node, id->second, {}});
    }
    node = known->second;
  }
  add(nodes_[node].own);
  auto& row = rows_[{stack.state, stack.function}];
  auto before = row.cell.now - row.cell.before;
  add(row.cell);
  if (auto change = row.cell.now - row.cell.before - before; change != 0)
    row.by_node[node] += change;
}

void StackComparison::add_old(const Stack& stack, double value, double variance) {
  before_ += value;
  add(stack, [&](Cell& cell) {
    cell.before += value;
    cell.variance += variance;
  });
}

void StackComparison::add_new(const Stack& stack, double value) {
  now_ += value;
  add(stack, [&](Cell& cell) { cell.now += value; });
}

void StackComparison::add_slice(const Stack& stack, std::size_t slice, double value) {
  if (slice >= slices_.size()) return;
  add(stack, [&](Cell& cell) { cell.slices[slice] += static_cast<float>(value); });
}

/// The largest of: three times the spread of the thirds of this run, five standard errors of the
/// difference, and a two-hundredth of all time.
double StackComparison::noise(const Cell& cell) const {
  const auto count = slices_.size();
  double mean = 0, squares = 0, sums[kParts] = {}, lengths[kParts] = {};
  for (std::size_t i = 0; i < count; i++) {
    mean += static_cast<double>(cell.slices[i]) * slices_[i] / length_;
    sums[i * kParts / count] += static_cast<double>(cell.slices[i]) * slices_[i];
    lengths[i * kParts / count] += slices_[i];
  }
  double spread = 0;
  for (std::size_t i = 0; i < kParts; i++)
    if (lengths[i] > 0) spread += std::pow(sums[i] / lengths[i] - mean, 2) / (kParts - 1);
  for (std::size_t i = 0; i < count; i++)
    squares += slices_[i] / length_ * std::pow(static_cast<double>(cell.slices[i]) - mean, 2);
  auto now = count > 1 ? squares / static_cast<double>(count - 1) : 0;
  // The recorded run varies as this one does, the larger the more; by its number of events only if
  // this one has none.
  auto then = cell.variance;
  if (cell.now > 0) then = now * ratio_ * std::max(1.0, cell.before / cell.now);
  return std::max({kSpreads * std::sqrt(spread), kErrors * std::sqrt(now + then),
                   kLeastShare * std::max(before_, now_)});
}

bool StackComparison::Change::is_real() const { return above_noise(before, now, noise); }

std::vector<StackComparison::Change> StackComparison::changes() const {
  std::vector<Change> all;
  if (!knows_noise()) return all;
  for (auto& [key, row] : rows_) {
    Change change{key.first, key.second, {}, row.cell.before, row.cell.now, noise(row.cell)};
    if (!change.is_real()) continue;
    const bool more = change.change() > 0;
    auto most = std::ranges::max_element(row.by_node, [&](auto& a, auto& b) {
      return more ? a.second < b.second : a.second > b.second;
    });
    for (auto node = most == row.by_node.end() ? 0 : most->first; node; node = nodes_[node].parent)
      change.path = names_[nodes_[node].name] + (change.path.empty() ? "" : ";") + change.path;
    all.push_back(std::move(change));
  }
  std::ranges::stable_sort(
      all, [](auto& a, auto& b) { return std::abs(a.change()) > std::abs(b.change()); });
  return all;
}

/// Of each frame and those above it.
std::vector<StackComparison::Cell> StackComparison::sums() const {
  std::vector<Cell> all;
  all.reserve(nodes_.size());
  for (auto& n : nodes_) all.push_back(n.own);
  for (auto i = nodes_.size(); --i > 0;) all[nodes_[i].parent].add(all[i]);
  return all;
}

std::string StackComparison::svg(const PictureTitle& title) const {
  const auto cells = sums();
  std::vector<double> noises;
  noises.reserve(cells.size());
  double largest = 0;
  for (std::size_t i = 0; i < cells.size(); i++) {
    auto& c = cells[i];
    noises.push_back(knows_noise() ? noise(c) : INFINITY);
    if (above_noise(c.before, c.now, noises[i]))
      largest = std::max(largest, std::abs(c.now - c.before));
  }
  const auto everything = std::max(now(), before());

  FlameGraph graph;
  std::vector<std::uint32_t> drawn(nodes_.size()), shown{0};
  double gone_total = 0;
  for (std::size_t i = 1; i < nodes_.size(); i++) {
    auto& n = nodes_[i];
    if (n.parent && !drawn[n.parent]) continue;
    if (cells[i].now <= 0 && cells[i].before <= 0) continue;
    drawn[i] = graph.child(drawn[n.parent], {StackWord::user, false, names_[n.name]});
    if (!drawn[i]) continue;
    if (shown.size() <= drawn[i]) shown.resize(drawn[i] + 1);
    shown[drawn[i]] = static_cast<std::uint32_t>(i);
    const bool gone = cells[i].now <= 0;
    if (gone) gone_total += n.own.before;
    auto value = gone ? n.own.before : n.own.now;
    graph.add_to(drawn[i], static_cast<std::uint64_t>(std::llround(value)));
  }

  FlameGraph::Paint paint;
  paint.css = kCss;
  paint.legend = {{"more2", "more"},         {"more6", ""},    {"less2", "less"}, {"less6", ""},
                  {"gone", "only recorded"}, {"same", "noise"}};
  paint.look = [&](std::uint32_t frame) -> FlameGraph::Paint::Look {
    const auto i = frame ? shown[frame] : 0;
    auto& c = cells[i];
    const auto change = c.now - c.before;
    const bool real = above_noise(c.before, c.now, noises[i]), gone = c.now <= 0 && c.before > 0;
    auto words = fmt::format("now {}, recorded {}: {}{} ({:+.2f} % of all)", per_second(c.now),
                             per_second(c.before), change > 0 ? "+" : "", per_second(change),
                             everything > 0 ? 100 * change / everything : 0);
    if (!knows_noise())
      words += "; the noise is not known";
    else
      words += fmt::format("; noise {}", per_second(noises[i]));
    if (!real) return {gone ? "gone" : "same", std::move(words)};
    return {difference_style(change / largest, gone), std::move(words)};
  };

  auto with = title;
  with.unit = "nanoseconds per second and thread";
  std::vector<std::string> notes{fmt::format("now {}, recorded {}: {:+.2f} %", per_second(now()),
                                             per_second(before()),
                                             before() > 0 ? 100 * (now() / before() - 1) : 0)};
  notes.emplace_back(
      "width: time of this run; frames that only the recorded one has are as wide as in it, with a "
      "dashed edge");
  notes.push_back(fmt::format(
      "red: more, blue: less, the deeper the larger the change{}; grey: within the noise",
      largest > 0 ? fmt::format(" (up to {})", per_second(largest)) : ""));
  if (gone_total > 0)
    notes.push_back(fmt::format("{} of the width: frames that only the recorded run has",
                                per_second(gone_total)));
  if (!knows_noise())
    notes.emplace_back("this run is too short to know the noise: no change is shown");
  if (cut_)
    notes.push_back(fmt::format("{} stacks are cut: there are more than {} different frames", cut_,
                                kMostFrames));
  with.notes.insert(with.notes.begin(), notes.begin(), notes.end());
  return graph.svg(with, paint);
}

}  // namespace coretap
