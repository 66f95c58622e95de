#include "coretap/nearest.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace coretap {

namespace {

constexpr std::size_t kLongest = 64;  // letters of a compared word; longer words are not typos

/// Counts letters to insert, remove, replace or swap (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> older, before(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); j++) before[j] = j;
  for (std::size_t i = 1; i <= a.size(); i++) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); j++) {
      now[j] = std::min({before[j] + 1, now[j - 1] + 1,
                         before[j - 1] + static_cast<std::size_t>(a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], older[j - 2] + 1);
    }
    older = before;
    before = now;
  }
  return before[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known) {
  if (word.empty() || word.size() > kLongest) return {};
  std::string_view begun;
  std::size_t matches = 0;
  for (auto candidate : known)
    if (candidate.starts_with(word) && candidate != begun) {
      begun = candidate;
      matches++;
    }
  if (matches == 1) return begun;
  std::string_view best;
  std::size_t least = word.size() < 2 ? 1 : word.size() <= 4 ? 2 : 3;  // above the maximum
  for (auto candidate : known) {
    if (candidate.size() > word.size() + 2 || word.size() > candidate.size() + 2) continue;
    if (auto d = distance(word, candidate); d < least) {
      least = d;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
  auto best = nearest(word, known);
  return best.empty() ? "" : fmt::format("did you mean '{}'?", best);
}

Result<void> check_key(std::string_view option, std::string_view key,
                       const std::vector<std::string_view>& known) {
  if (std::ranges::find(known, key) != known.end()) return {};
  auto meant = did_you_mean(key, known);
  return usage(fmt::format("{}: there is no key '{}'", option, key),
               meant.empty() ? fmt::format("there are: {}", fmt::join(known, ", ")) : meant);
}

}  // namespace coretap
