// A bounded number of series with exact sums: label sets without a separate series are counted
// together, as "other".
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace coretap::metrics {

/// Every added value is counted in exactly one series: the increases of all series add up to the
/// added values. A removed series takes its value with it instead of adding it to "other", whose
/// rate would then show old events.
class SeriesTable {
 public:
  using Labels = std::vector<std::string>;

  struct Series {
    std::vector<std::uint64_t> values;
    std::uint64_t lately = 0;   ///< events since the last redistribution of series
    bool used = true;           ///< a value was added since the last turn()
    std::uint64_t used_at = 0;  ///< seconds; time of the last turn() with `used`
    bool shown = false;         ///< already on a page; until then pages show 0
    bool other = false;         ///< counts label sets without a separate series
  };

  static constexpr std::uint64_t kTurnSeconds = 60;    ///< between redistributions of series
  static constexpr std::uint64_t kIdleSeconds = 3600;  ///< after which an idle series is removed
  static constexpr char kOther[] = "other";

  /// `capped`: for each label, whether it becomes "other" if there is no room; if no label is
  /// capped, or there is no room for those rows either, all labels become "other". At most `most`
  /// series, at least one.
  SeriesTable(std::vector<bool> capped, std::size_t values, std::size_t most);

  void add(const Labels& labels, std::span<const std::uint64_t> values, std::uint64_t events);
  /// Removes all series and waiting label sets.
  void clear();
  /// Marks all series as shown on a page.
  void shown();
  /// Call it at each collection, with `now` in seconds of a monotonic clock: removes idle series,
  /// and once a minute replaces series with few events by label sets in "other" that have more than
  /// twice as many.
  void turn(std::uint64_t now);

  const std::map<Labels, Series>& all() const { return series_; }
  /// Number of events counted in "other".
  std::uint64_t folded() const { return folded_; }
  std::size_t most() const { return most_; }

 private:
  Series& place(const Labels& labels, std::uint64_t events);
  Labels folded_labels(const Labels& labels, bool all) const;
  void remember(const Labels& labels, std::uint64_t events);

  std::vector<bool> capped_;
  bool any_capped_;
  std::size_t values_, most_, others_ = 0, most_others_;
  std::map<Labels, Series> series_;
  std::map<Labels, std::uint64_t> waiting_;  ///< frequent label sets without a series (Misra-Gries)
  std::uint64_t folded_ = 0, turned_at_ = 0;
};

}  // namespace coretap::metrics
