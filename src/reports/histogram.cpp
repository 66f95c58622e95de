#include "reports/histogram.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace coretap {

namespace {

constexpr int kStars = 40;
constexpr int kFewestStars = 4;
constexpr std::string_view kCount = "count";

std::uint64_t times(std::uint64_t value, std::uint64_t step) {
  return value > UINT64_MAX / step ? UINT64_MAX : value * step;
}

/// Bounds of a slot, in steps: from <= value < below.
std::uint64_t slot_from(const HistogramScale& scale, int slot) {
  if (scale.linear) return static_cast<std::uint64_t>(slot);
  return slot ? 1ULL << slot : 0;
}

std::uint64_t slot_below(const HistogramScale& scale, int slot) {
  if (slot == HIST_SLOTS - 1) return UINT64_MAX;
  return scale.linear ? static_cast<std::uint64_t>(slot) + 1 : 2ULL << slot;
}

/// The title is as wide as the labels.
std::string draw_rows(const std::vector<Bar>& bars, const std::string& title,
                      std::string_view counts, int columns) {
  if (bars.empty()) return {};
  std::uint64_t most = 1;
  for (auto& bar : bars) most = std::max(most, bar.count);
  // Wide bounds may exceed 80 columns; a narrower terminal gets shorter bars.
  int left = static_cast<int>(bars.front().label.size());
  int stars = columns >= 80 ? kStars : std::clamp(columns - left - 14, kFewestStars, kStars);
  auto text = fmt::format("{} : {:<8} distribution", title, counts);
  if (columns < 80)
    text.resize(std::min<std::size_t>(text.size(), static_cast<std::size_t>(columns)));
  text += '\n';
  for (auto& bar : bars) {
    auto length =
        static_cast<int>(static_cast<double>(bar.count) * stars / static_cast<double>(most));
    text += fmt::format("{} : {:<8} |{:<{}}|\n", bar.label, bar.count,
                        std::string(static_cast<std::size_t>(length), '*'), stars);
  }
  return text;
}

}  // namespace

std::string with_unit(std::string_view name, const HistogramScale& scale) {
  return fmt::format("{}{}{}", name, scale.unit.suffix.empty() ? "" : "_", scale.unit.suffix);
}

std::uint64_t step_of(const HistogramScale& scale, const Config& config) {
  if (config.given("milliseconds")) return 1'000'000;
  if (config.given("microseconds")) return 1'000;
  return config.given("nanoseconds") ? 1 : scale.step;
}

std::uint64_t fine_step(std::uint64_t step) {
  return step % HIST_FINE_STEPS ? step : step / HIST_FINE_STEPS;
}

int slot_of_fine(std::uint32_t fine, std::uint64_t step) {
  // The power of two of the values in fine steps, and then in steps.
  const auto power = fine < HIST_FINE_STEPS
                         ? static_cast<int>(std::bit_width(fine | 1)) - 1
                         : static_cast<int>(fine >> HIST_FINE_BITS) + HIST_FINE_BITS - 1;
  return std::max(power - (step % HIST_FINE_STEPS ? 0 : HIST_FINE_BITS), 0);
}

hist folded(const fine_hist& fine, std::uint64_t step) {
  hist h{};
  for (std::uint32_t i = 0; i < HIST_FINE_SLOTS; i++)
    h.slots[slot_of_fine(i, step)] += fine.slots[i];
  h.total = fine.total;
  h.named = fine.named;
  return h;
}

void json_fine(JsonLine& line, const fine_hist& h, std::uint64_t step) {
  line.number("fine_step", step);
  line.key("fine").begin_array();
  for (std::uint32_t i = 0; i < HIST_FINE_SLOTS; i++)
    if (h.slots[i]) line.begin_array().number(i).number(h.slots[i]).end_array();
  line.end_array();
}

std::uint64_t HistogramScale::from(int slot) const { return times(slot_from(*this, slot), step); }
std::uint64_t HistogramScale::below(int slot) const { return times(slot_below(*this, slot), step); }

std::string_view HistogramScale::column() const {
  if (!title.empty()) return title;
  if (unit.suffix == unit::ns.suffix)
    return step >= 1'000'000 ? "msecs" : step >= 1'000 ? "usecs" : "nsecs";
  if (unit.suffix == unit::bytes.suffix) return step == 1024 ? "kbytes" : "bytes";
  return unit.suffix.empty() ? "value" : unit.suffix;
}

std::uint64_t histogram_count(const hist& h) {
  std::uint64_t count = 0;
  for (auto slot : h.slots) count += slot;
  return count;
}

std::string draw_histogram(const hist& h, const HistogramScale& scale, int columns) {
  int first = 0, last = HIST_SLOTS - 1;
  while (last >= 0 && !h.slots[last]) last--;
  if (last < 0) return {};
  if (scale.linear) {
    // Starts at the first slot with values.
    while (!h.slots[first]) first++;
    std::vector<Bar> bars;
    for (int i = first; i <= last; i++)
      bars.push_back(
          {fmt::format("{}{}", scale.from(i), i == HIST_SLOTS - 1 ? "+" : ""), h.slots[i]});
    return draw_bars(bars, scale.column(), kCount, columns);
  }
  // Bounds beyond 2^32 need wider columns; all rows have the same width.
  int width = last > 31 ? 20 : 10;
  std::vector<Bar> bars;
  for (int i = first; i <= last; i++) {
    auto below = slot_below(scale, i);
    bars.push_back({fmt::format("{:>{}} -> {:<{}}", slot_from(scale, i), width,
                                below - (below != UINT64_MAX), width),
                    h.slots[i]});
  }
  return draw_rows(bars,
                   fmt::format("{:{}}{:<{}}", "", width / 2, scale.column(), width + width / 2 + 4),
                   kCount, columns);
}

std::string draw_bars(const std::vector<Bar>& bars, std::string_view title, std::string_view counts,
                      int columns) {
  constexpr int kWidth = 10;
  auto aligned = bars;
  for (auto& bar : aligned) bar.label = fmt::format("{:>{}}", bar.label, kWidth);
  return draw_rows(aligned, fmt::format("{:>{}}", title, kWidth), counts, columns);
}

std::string histogram_summary(const hist& h, const HistogramScale& scale) {
  auto count = histogram_count(h);
  auto total = h.total / scale.step;
  return fmt::format("avg = {} {}, total: {} {}, count: {}", count ? total / count : 0,
                     scale.column(), total, scale.column(), count);
}

void json_histogram(JsonLine& line, const hist& h, const HistogramScale& scale) {
  line.number("count", histogram_count(h)).number(with_unit("total", scale), h.total);
  line.key("histogram").begin_array();
  auto from = with_unit("from", scale), below = with_unit("below", scale);
  for (int i = 0; i < HIST_SLOTS; i++) {
    if (!h.slots[i]) continue;
    line.begin_object().number(from, scale.from(i)).number(below, scale.below(i));
    line.number("count", h.slots[i]).end_object();
  }
  line.end_array();
}

std::vector<OutputKey> slot_keys(const HistogramScale& scale) {
  return {key(with_unit("from", scale), "integer", "lower bound of the range (inclusive)"),
          key(with_unit("below", scale), "integer", "upper bound of the range (exclusive)"),
          key("count", "integer", "values in this range")};
}

std::vector<OutputKey> histogram_keys(const HistogramScale& scale) {
  return {key("count", "integer", "number of all values"),
          key(with_unit("total", scale), "integer", "their sum"),
          key("histogram", "array of objects", "ranges that are not empty", {}, slot_keys(scale))};
}

}  // namespace coretap
