// Heat maps: histograms side by side in order of time, shaded by the number of values.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/histogram.hpp"
#include "program/picture.hpp"

namespace coretap {

class HeatMap {
 public:
  static constexpr std::size_t kMostColumns = 1200;  ///< above, each two become one
  static constexpr std::size_t kMostPanels = 24;     ///< additional keys share the last one

  explicit HeatMap(const HistogramScale& scale) : scale_(scale) {}

  /// Starts a column; values that follow were counted up to this time ("13:05:59.123").
  void begin_column(std::string time);
  /// `name`: the histogram's keys, untrusted; empty if there is only one histogram.
  void add(std::string_view name, const hist& h);

  /// The complete file, one interactive picture.
  std::string svg(const PictureTitle& title) const;

 private:
  struct Cell {
    std::size_t column;
    int slot;
    std::uint64_t count;
  };
  struct Panel {
    std::string name;
    std::vector<Cell> cells;  ///< by column, then slot
    std::size_t keys = 1;     ///< number of keys that share it
  };

  void halve();
  Panel& panel_of(std::string_view name);
  static void put_sums(std::string& out, const Panel& panel, std::size_t columns, int top);

  HistogramScale scale_;
  std::vector<std::string> times_;  ///< end time of each column
  std::size_t intervals_ = 1;       ///< per column
  std::size_t begun_ = 0;           ///< in the last column
  std::vector<Panel> panels_;
  std::vector<std::string> shared_;  ///< names that share the last panel
};

/// A line for a terminal: a character for each slot up to `slots`, the last one for all above,
/// darker for more values; `most` is the largest number so far.
std::string heat_line(const hist& h, int slots, int width, std::uint64_t& most);
/// The least number of each character: ". 1  : 3  - 9".
std::string heat_legend(std::uint64_t most);
/// Bounds above these lines: "1us 32us 1ms".
std::string heat_header(const HistogramScale& scale, int slots, int width);

}  // namespace coretap
