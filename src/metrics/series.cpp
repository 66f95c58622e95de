#include "metrics/series.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace coretap::metrics {

namespace {

constexpr std::size_t kMostWaiting = 1024;

}  // namespace

SeriesTable::SeriesTable(std::vector<bool> capped, std::size_t values, std::size_t most)
    : capped_(std::move(capped)),
      any_capped_(std::find(capped_.begin(), capped_.end(), true) != capped_.end()),
      values_(values),
      most_(std::max<std::size_t>(most, 1)),
      most_others_(any_capped_ ? std::max<std::size_t>(most_ / 4, 1) : 1) {}

SeriesTable::Labels SeriesTable::folded_labels(const Labels& labels, bool all) const {
  Labels folded = labels;
  for (std::size_t i = 0; i < folded.size(); i++)
    if (all || capped_[i]) folded[i] = kOther;
  return folded;
}

SeriesTable::Series& SeriesTable::place(const Labels& labels, std::uint64_t events) {
  if (auto found = series_.find(labels); found != series_.end()) return found->second;
  auto make = [&](const Labels& of, bool other) -> Series& {
    auto& s = series_[of];
    s.values.resize(values_);
    s.other = other;
    others_ += other;
    return s;
  };
  // Some places are reserved for rows of "other".
  if (labels.empty() || series_.size() - others_ + most_others_ < most_) {
    waiting_.erase(labels);
    return make(labels, false);
  }
  remember(labels, events);
  folded_ += events;
  if (any_capped_) {
    auto folded = folded_labels(labels, false);
    if (auto found = series_.find(folded); found != series_.end()) return found->second;
    // The last place is reserved for rows that fit nowhere else.
    if (others_ + 1 < most_others_) return make(folded, true);
  }
  auto folded = folded_labels(labels, true);
  auto found = series_.find(folded);
  return found != series_.end() ? found->second : make(folded, true);
}

void SeriesTable::add(const Labels& labels, std::span<const std::uint64_t> values,
                      std::uint64_t events) {
  auto& s = place(labels, events);
  for (std::size_t i = 0; i < values.size(); i++) s.values[i] += values[i];
  s.lately += events;
  s.used = true;
}

/// Keeps the most frequent label sets, regardless of others in between (Misra and Gries, 1982).
void SeriesTable::remember(const Labels& labels, std::uint64_t events) {
  if (auto found = waiting_.find(labels); found != waiting_.end()) {
    found->second += events;
    return;
  }
  if (waiting_.size() < kMostWaiting) {
    waiting_.emplace(labels, events);
    return;
  }
  auto least = events;
  for (auto& [of, count] : waiting_) least = std::min(least, count);
  for (auto at = waiting_.begin(); at != waiting_.end();)
    at = (at->second -= least) ? std::next(at) : waiting_.erase(at);
  if (events > least) waiting_.emplace(labels, events - least);
}

void SeriesTable::clear() {
  series_.clear();
  waiting_.clear();
  others_ = 0;
}

void SeriesTable::shown() {
  for (auto& [labels, s] : series_) s.shown = true;
}

void SeriesTable::turn(std::uint64_t now) {
  for (auto& [labels, s] : series_)
    if (std::exchange(s.used, false)) s.used_at = now;
  std::erase_if(series_, [&](auto& one) {
    auto& s = one.second;
    return !s.other && !one.first.empty() && s.used_at + kIdleSeconds < now;
  });
  if (now < turned_at_ + kTurnSeconds) return;
  turned_at_ = now;
  using Slot = std::map<Labels, Series>::iterator;
  std::vector<Slot> slots;
  for (auto at = series_.begin(); at != series_.end(); ++at)
    if (!at->second.other && !at->first.empty()) slots.push_back(at);
  std::sort(slots.begin(), slots.end(),
            [](auto a, auto b) { return a->second.lately < b->second.lately; });
  std::vector<std::map<Labels, std::uint64_t>::const_iterator> candidates;
  for (auto at = waiting_.cbegin(); at != waiting_.cend(); ++at) candidates.push_back(at);
  std::sort(candidates.begin(), candidates.end(),
            [](auto a, auto b) { return a->second > b->second; });
  for (std::size_t i = 0; i < std::min(slots.size(), candidates.size()); i++) {
    if (candidates[i]->second <= 2 * slots[i]->second.lately) break;
    series_.erase(slots[i]);
    auto& s = series_[candidates[i]->first];
    s.values.resize(values_);
  }
  waiting_.clear();
  for (auto& [labels, s] : series_) s.lately = 0;
}

}  // namespace coretap::metrics
