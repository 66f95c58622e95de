// Series of a bounded number with exact sums: label sets that have no series of their own are
// counted together, as "other".
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace coretap::metrics {

/// Every value that is added is in exactly one series at the time it is added: the increases of all
/// series are the increases of what was added. A series that leaves takes its value with it rather
/// than giving it to "other", whose rate would show events that were long ago.
class SeriesTable {
 public:
  using Labels = std::vector<std::string>;

  struct Series {
    std::vector<std::uint64_t> values;
    std::uint64_t lately = 0;   ///< events since the last change of who has a series
    bool used = true;           ///< something was added since the last turn()
    std::uint64_t used_at = 0;  ///< seconds; the last turn() for which it was
    bool shown = false;         ///< on a page already; before that pages say 0
    bool other = false;         ///< of what has no series of its own
  };

  static constexpr std::uint64_t kTurnSeconds = 60;    ///< between changes of who has a series
  static constexpr std::uint64_t kIdleSeconds = 3600;  ///< after which a series leaves
  static constexpr char kOther[] = "other";

  /// `capped`: for each label, whether it becomes "other" where there is no room; if no label is,
  /// or there is no room for those rows either, all become so. At most `most` series, at least one.
  SeriesTable(std::vector<bool> capped, std::size_t values, std::size_t most);

  void add(const Labels& labels, std::span<const std::uint64_t> values, std::uint64_t events);
  /// All series leave, and what waits for one.
  void clear();
  /// A page was made of all series.
  void shown();
  /// At each collection, `now` in seconds of a clock that does not go back: lets idle series leave,
  /// and once a minute those that have few events give place to label sets in "other" that have
  /// more than twice as many.
  void turn(std::uint64_t now);

  const std::map<Labels, Series>& all() const { return series_; }
  /// Events that were counted in "other".
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
