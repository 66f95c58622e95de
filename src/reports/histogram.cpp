#include "reports/histogram.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace coretap {

namespace {
constexpr int kStars = 40;
}

std::uint64_t slot_from(int slot) { return slot ? 1ULL << slot : 0; }
std::uint64_t slot_below(int slot) { return slot < 63 ? 2ULL << slot : UINT64_MAX; }

std::uint64_t histogram_count(const hist& h) {
  std::uint64_t count = 0;
  for (auto slot : h.slots) count += slot;
  return count;
}

std::string draw_histogram(const hist& h, std::string_view unit) {
  int first = 0, last = HIST_SLOTS - 1;
  while (last >= 0 && !h.slots[last]) last--;
  if (last < 0) return {};
  auto most = *std::max_element(h.slots, h.slots + HIST_SLOTS);
  // Bounds beyond 2^32 need more room; the columns of all rows stay the same.
  int width = last > 31 ? 20 : 10;
  auto text = fmt::format("{:{}}{:<{}} : count    distribution\n", "", width / 2, unit,
                          width + width / 2 + 4);
  for (int i = first; i <= last; i++) {
    auto stars =
        static_cast<int>(static_cast<double>(h.slots[i]) * kStars / static_cast<double>(most));
    text +=
        fmt::format("{:>{}} -> {:<{}} : {:<8} |{:<{}}|\n", slot_from(i), width,
                    slot_below(i) - (i < 63), width, h.slots[i], std::string(stars, '*'), kStars);
  }
  return text;
}

void json_histogram(JsonLine& line, const hist& h, std::uint64_t unit_ns) {
  line.number("count", histogram_count(h)).number("total_ns", h.total_ns).key("histogram");
  line.begin_array();
  for (int i = 0; i < HIST_SLOTS; i++) {
    if (!h.slots[i]) continue;
    auto below = slot_below(i);
    line.begin_object()
        .number("from_ns",
                slot_from(i) > UINT64_MAX / unit_ns ? UINT64_MAX : slot_from(i) * unit_ns)
        .number("below_ns", below > UINT64_MAX / unit_ns ? UINT64_MAX : below * unit_ns)
        .number("count", h.slots[i])
        .end_object();
  }
  line.end_array();
}

}  // namespace coretap
