#include "reports/heatmap.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/figures.hpp"
#include "coretap/sanitize.hpp"
#include "reports/heatmap_script.hpp"

namespace coretap {

namespace {

// Pixels, as those of every picture.
constexpr int kMargin = kPictureMargin, kLine = kPictureLine, kLeft = 130, kRow = 14;
constexpr int kInner = kPictureWidth - kLeft - kMargin;
constexpr int kSumBars = 24, kSums = kSumBars + kLine;  // the sums of columns
constexpr int kSwatch = 30;
constexpr double kLetter = kPictureLetter;
constexpr std::size_t kTicks = 8;
constexpr unsigned kShades = 16;
constexpr std::string_view kDensity = " .:-=+*#%@";

template <class... Arguments>
void put(std::string& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Arguments>(arguments)...);
}

/// The shade for a number, out of `shades`; logarithmic, so that small numbers stay visible.
unsigned shade(std::uint64_t count, std::uint64_t most, unsigned shades) {
  auto part = std::log1p(static_cast<double>(count)) / std::log1p(static_cast<double>(most));
  return std::min(shades - 1, static_cast<unsigned>(std::lround(part * (shades - 1))));
}

/// The numbers for which shade() has results: the shade, and the least number that has it.
std::vector<std::pair<unsigned, std::uint64_t>> shades_of(std::uint64_t most, unsigned shades) {
  std::vector<std::pair<unsigned, std::uint64_t>> all;
  const auto whole = std::log1p(static_cast<double>(most));
  for (unsigned i = 0; i < shades; i++) {
    auto part = (static_cast<double>(i) - 0.5) / (shades - 1);
    auto least = static_cast<std::uint64_t>(std::max(1.0, std::ceil(std::expm1(part * whole))));
    // The logarithms are rounded.
    while (least > 1 && shade(least - 1, most, shades) >= i) least--;
    while (least <= most && shade(least, most, shades) < i) least++;
    if (least <= most && shade(least, most, shades) == i) all.emplace_back(i, least);
  }
  return all;
}

/// 1,234,567; large numbers, for which there is no room, as 1.2e+9.
std::string count_words(std::uint64_t count) {
  constexpr std::uint64_t kLarge = 1'000'000'000;
  if (count < kLarge) return grouped(count);
  auto words = fmt::format("{:.1e}", static_cast<double>(count));  // the script has no 0 in e+09
  if (auto zero = words.find("+0"); zero != std::string::npos) words.erase(zero + 1, 1);
  return words;
}

/// "0", "512ns", "32us", "1ms", "16s"; "4K", "1M" for other units.
std::string brief(const HistogramScale& scale, std::uint64_t value) {
  bool time = scale.unit.suffix == unit::ns.suffix;
  static constexpr std::string_view kTimes[] = {"ns", "us", "ms", "s"};
  static constexpr std::string_view kSizes[] = {"", "K", "M", "G"};
  auto most = std::size(kTimes) - 1;
  std::size_t i = 0;
  std::uint64_t step = time ? 1000 : 1024;
  if (!value) return "0";
  for (; i < most && value >= step; i++) value /= step;
  return fmt::format("{}{}", value, time ? kTimes[i] : kSizes[i]);
}

/// "duration (usecs)"
std::string axis_of(const HistogramScale& scale) {
  if (!scale.title.empty() || scale.unit.suffix.empty()) return std::string(scale.column());
  return fmt::format("{} ({})", scale.unit.suffix == unit::ns.suffix ? "duration" : "size",
                     scale.column());
}

std::string range_of(const HistogramScale& scale, int slot) {
  auto from = scale.from(slot) / scale.step, below = scale.below(slot);
  if (below == UINT64_MAX) return fmt::format("{} {} and more", from, scale.column());
  auto last = below / scale.step - 1;
  if (last == from) return fmt::format("{} {}", from, scale.column());
  return fmt::format("{} to {} {}", from, last, scale.column());
}

std::string style() {
  std::string out;
  put_code(out, kHeatStyle);
  // Light to dark on a light background, dark to light on a dark one.
  auto shades = [&](int least, int most) {
    for (unsigned i = 0; i < kShades; i++) {
      auto part = static_cast<double>(i) / (kShades - 1);
      put(out, ".c{} {{ fill: hsl({:.0f},85%,{:.0f}%); }}\n", i, 48 - 44 * part,
          least + (most - least) * part);
    }
  };
  shades(82, 30);
  out += "@media screen and (prefers-color-scheme: dark) {\n";
  shades(26, 78);
  return out + "}\n";
}

/// The colours with the numbers from which they hold; the last number is the largest.
void put_legend(std::string& out, std::uint64_t most, std::string_view unit, int y) {
  auto words = fmt::format("{} per cell, from:", unit);
  put(out, "<g class=\"scale\"><text class=\"dim\" x=\"{}\" y=\"{}\">{}</text>\n", kMargin, y,
      xml_text(words));
  const auto all = shades_of(most, kShades);
  const auto left = kMargin + static_cast<int>(static_cast<double>(words.size() + 1) * kLetter);
  std::size_t longest = 0;
  for (auto& [shade, least] : all) longest = std::max(longest, count_words(least).size());
  const auto apart =
      1 + static_cast<std::size_t>(static_cast<double>(longest + 1) * kLetter) / kSwatch;
  for (std::size_t i = 0; i < all.size(); i++) {
    const auto x = left + static_cast<int>(i) * kSwatch;
    put(out, "<rect class=\"c{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"14\"/>\n", all[i].first,
        x, y - 12, kSwatch);
    const bool last = i + 1 == all.size();
    if (last || (i % apart == 0 && i + 2 * apart < all.size()))
      put(out, "<text class=\"dim\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n",
          x + (last && i ? kSwatch : 0), y + kLine - 2, last && i ? "end" : "start",
          count_words(all[i].second));
  }
  out += "</g>\n";
}

}  // namespace

/// The sum of each column, as bars and, if there is room, as numbers.
void HeatMap::put_sums(std::string& out, const Panel& panel, std::size_t columns, int top) {
  std::vector<std::uint64_t> sums(columns);
  for (auto& cell : panel.cells) sums[cell.column] += cell.count;
  const auto most = *std::ranges::max_element(sums);
  put(out,
      "<text class=\"dim\" x=\"{0}\" y=\"{1}\" text-anchor=\"end\">total</text>\n"
      "<text class=\"dim most\" x=\"{0}\" y=\"{2}\" text-anchor=\"end\">most: {3}</text>\n"
      "<svg class=\"sums\" x=\"{4}\" y=\"{5}\" width=\"{6}\" height=\"{7}\" viewBox=\"0 0 {8} 100\" "
      "preserveAspectRatio=\"none\"><path class=\"bars\" d=\"M0 100",
      kLeft - 6, top + 14, top + 14 + kLine, count_words(most), kLeft, top + kLine, kInner,
      kSumBars, columns);
  for (std::size_t i = 0; i < columns; i++)
    put(out, "V{:.0f}H{}", 100 - percent(sums[i], most), i + 1);
  out += "V100z\"/></svg>\n";
  const auto wide = kInner / static_cast<double>(columns);
  if (static_cast<double>(count_words(most).size() + 1) * kLetter > wide) return;
  for (std::size_t i = 0; i < columns; i++)
    put(out, "<text class=\"dim sum\" x=\"{:.0f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
        kLeft + (static_cast<double>(i) + 0.5) * wide, top + 14, count_words(sums[i]));
}

void HeatMap::begin_column(std::string time) {
  if (!times_.empty() && begun_ < intervals_) {
    times_.back() = std::move(time);
    begun_++;
    return;
  }
  if (times_.size() == kMostColumns) halve();
  times_.push_back(std::move(time));
  begun_ = 1;
}

void HeatMap::halve() {
  std::vector<std::string> times;
  for (std::size_t i = 1; i < times_.size(); i += 2) times.push_back(std::move(times_[i]));
  times_ = std::move(times);
  intervals_ *= 2;
  for (auto& panel : panels_) {
    for (auto& cell : panel.cells) cell.column /= 2;
    std::ranges::sort(panel.cells, {}, [](auto& c) { return std::pair(c.column, c.slot); });
    std::vector<Cell> cells;
    for (auto& cell : panel.cells)
      if (!cells.empty() && cells.back().column == cell.column && cells.back().slot == cell.slot)
        cells.back().count += cell.count;
      else
        cells.push_back(cell);
    panel.cells = std::move(cells);
  }
}

HeatMap::Panel& HeatMap::panel_of(std::string_view name) {
  for (auto& panel : panels_)
    if (panel.name == name) return panel;
  if (panels_.size() < kMostPanels) return panels_.emplace_back(Panel{std::string(name), {}, 1});
  auto& last = panels_.back();
  if (shared_.empty()) shared_.push_back(last.name);
  if (std::ranges::find(shared_, name) == shared_.end()) shared_.emplace_back(name);
  last.keys = shared_.size();
  return last;
}

void HeatMap::add(std::string_view name, const hist& h) {
  auto& cells = panel_of(name).cells;
  auto column = times_.size() - 1;
  for (int slot = 0; slot < HIST_SLOTS; slot++) {
    if (!h.slots[slot]) continue;
    auto known = std::find_if(cells.rbegin(), cells.rend(),
                              [&](auto& c) { return c.column != column || c.slot == slot; });
    if (known != cells.rend() && known->column == column)
      known->count += h.slots[slot];
    else
      cells.push_back({column, slot, h.slots[slot]});
  }
}

std::string HeatMap::svg(const PictureTitle& title) const {
  int low = HIST_SLOTS - 1, high = 0;
  std::uint64_t most = 1, total = 0;
  for (auto& panel : panels_)
    for (auto& cell : panel.cells) {
      low = std::min(low, cell.slot);
      high = std::max(high, cell.slot);
      most = std::max(most, cell.count);
      total += cell.count;
    }
  low = std::min(low, high);
  int rows = high - low + 1;
  auto columns = std::max<std::size_t>(1, times_.size());

  std::vector<std::string> notes{fmt::format(
      "total: {} {}; the fullest cell has {}{}", grouped(total), title.unit, count_words(most),
      intervals_ > 1 ? fmt::format("; a column covers {} intervals", intervals_) : std::string())};
  if (!shared_.empty())
    notes.push_back(fmt::format("the last {} histograms are drawn as one", shared_.size()));
  notes.insert(notes.end(), title.notes.begin(), title.notes.end());
  const int legend = below_titles(notes), head = legend + 3 * kLine;
  const int plane = rows * kRow, step = plane + kSums + 3 * kLine;
  auto shown = std::max<std::size_t>(1, panels_.size());
  const int height = head + static_cast<int>(shown) * step + kLine + kMargin;

  std::string out;
  begin_picture(out, title, height, style());
  put_titles(out, title, notes);
  put_legend(out, most, title.unit, legend);

  std::vector<std::string> ranges;
  for (int slot = high; slot >= low; slot--) ranges.push_back(range_of(scale_, slot));
  put(out,
      "<g class=\"heat\" data-unit=\"{}\" data-times=\"{}\" data-ranges=\"{}\" data-each=\"{}\">\n",
      xml_text(title.unit), fmt::join(times_, " "), fmt::join(ranges, "|"), intervals_);
  for (std::size_t p = 0; p < shown; p++) {
    const int top = head + static_cast<int>(p) * step + kLine;
    static const Panel kNothing;
    auto& panel = panels_.empty() ? kNothing : panels_[p];
    auto name = panel.keys > 1 ? fmt::format("{} others", panel.keys) : printable(panel.name);
    put(out,
        "<text class=\"dim\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n"
        "<text class=\"ink name\" x=\"{}\" y=\"{}\">{}</text>\n",
        kLeft - 6, top - 5, xml_text(axis_of(scale_)), kLeft, top - 5, xml_text(name));
    for (int slot = low; slot <= high; slot += rows > 24 ? 4 : 2)
      put(out, "<text class=\"dim\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLeft - 6,
          top + (high - slot + 1) * kRow - 2, brief(scale_, scale_.from(slot)));
    put(out,
        "<svg class=\"plane\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" "
        "preserveAspectRatio=\"none\"><rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n",
        kLeft, top, kInner, plane, columns, rows);
    for (auto& cell : panel.cells)
      put(out, "<path class=\"c{0}\" d=\"M{1} {2}h1v1H{1}z\" data-n=\"{3}\"/>\n",
          shade(cell.count, most, kShades), cell.column, high - cell.slot, cell.count);
    out += "</svg>\n";
    put_sums(out, panel, columns, top + plane);
    const auto ticks = std::min(kTicks, times_.size());
    for (std::size_t i = 0; i < ticks; i++) {
      auto at = ticks > 1 ? i * (columns - 1) / (ticks - 1) : 0;
      put(out, "<text class=\"dim tick\" x=\"{:.0f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
          std::clamp(
              kLeft + (static_cast<double>(at) + 0.5) * kInner / static_cast<double>(columns),
              kLeft + 4 * kLetter, kPictureWidth - kMargin - 4 * kLetter),
          top + plane + kSums + 14, times_[at].substr(0, 8));
    }
  }
  put(out,
      "<text class=\"dim axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">time of day at the end of "
      "the column (hours:minutes:seconds)</text>\n</g>\n"
      "<g class=\"script live\"><text class=\"ink detail\" x=\"{}\" y=\"{}\"/>\n"
      "<text class=\"ink reset\" x=\"{}\" y=\"{}\" text-anchor=\"end\" role=\"button\" "
      "tabindex=\"0\" visibility=\"hidden\">reset zoom</text></g>\n",
      kLeft + kInner / 2, head + static_cast<int>(shown) * step + 10, kMargin, legend + 2 * kLine,
      kPictureWidth - kMargin, legend + 2 * kLine);
  end_picture(out, kHeatScript);
  return out;
}

std::string heat_line(const hist& h, int slots, int width, std::uint64_t& most) {
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(slots));
  for (int i = 0; i < HIST_SLOTS; i++)
    counts[static_cast<std::size_t>(std::min(i, slots - 1))] += h.slots[i];
  most = std::max(most, *std::ranges::max_element(counts));
  std::string line;
  for (auto count : counts) {
    // A single value must be visible.
    auto level = count ? std::max(1U, shade(count, most, kDensity.size())) : 0;
    line.append(static_cast<std::size_t>(width), kDensity[level]);
  }
  return line;
}

std::string heat_legend(std::uint64_t most) {
  std::string line;
  unsigned before = 0;
  for (auto [shade, least] : shades_of(most, kDensity.size())) {
    auto level = std::max(1U, shade);  // as in heat_line()
    if (level == before) continue;
    before = level;
    line += fmt::format("{}{} {}", line.empty() ? "" : "  ", kDensity[level], least);
  }
  return line;
}

std::string heat_header(const HistogramScale& scale, int slots, int width) {
  auto letters = static_cast<std::size_t>(width);
  auto room = letters * static_cast<std::size_t>(slots);
  int step = width == 1 ? 8 : 4;
  std::string line;
  for (int slot = 0; slot < slots; slot += step) {
    auto at = letters * static_cast<std::size_t>(slot);
    auto word = brief(scale, scale.from(slot));
    if (line.size() + (line.empty() ? 0 : 1) > at || at + word.size() > room) continue;
    line.resize(at, ' ');
    line += word;
  }
  line.resize(room, ' ');
  return line;
}

}  // namespace coretap
