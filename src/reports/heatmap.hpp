// Heat maps: histograms side by side in the order of time, a shade for each number of values.
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
  static constexpr std::size_t kMostColumns = 1200;  ///< then two become one
  static constexpr std::size_t kMostPanels = 24;     ///< further keys share the last one

  explicit HeatMap(const HistogramScale& scale) : scale_(scale) {}

  /// What follows was counted up to this moment ("13:05:59.123").
  void begin_column(std::string time);
  /// `name`: of the histogram's keys, untrusted; empty where there is one histogram.
  void add(std::string_view name, const hist& h);

  /// The whole file, one interactive picture.
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
    std::size_t keys = 1;     ///< that share it
  };

  void halve();
  Panel& panel_of(std::string_view name);

  HistogramScale scale_;
  std::vector<std::string> times_;  ///< when each column ended
  std::size_t intervals_ = 1;       ///< in a column
  std::size_t begun_ = 0;           ///< of the last column's
  std::vector<Panel> panels_;
  std::vector<std::string> shared_;  ///< names in the last panel
};

/// A line for a terminal: a character for each slot up to `slots`, the last of them for all above,
/// darker the more values it has; `most` is the largest number so far.
std::string heat_line(const hist& h, int slots, int width, std::uint64_t& most);
/// Bounds above such lines: "1us 32us 1ms".
std::string heat_header(const HistogramScale& scale, int slots, int width);

}  // namespace coretap
