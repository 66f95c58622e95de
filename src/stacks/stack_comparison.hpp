// Compares the stacks of this run with recorded ones: what takes more or less time than before, and
// what is only noise. Pure: paths and numbers in, changes and a picture out.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/picture.hpp"

namespace coretap {

/// Times per second and thread, in nanoseconds.
class StackComparison {
 public:
  static constexpr std::size_t kMostSlices = 24;
  static constexpr std::size_t kMostFrames = 1 << 18;
  static constexpr std::size_t kLeastSlices = 3;  ///< fewer: the noise is not known

  /// `slices`: the lengths of the parts of this run; `lasted`: of the recorded one, in the same
  /// unit.
  StackComparison(std::vector<double> slices, double lasted);

  /// A stack of one side; names are those of folded stacks.
  struct Stack {
    std::vector<std::string> path;  ///< outermost frame first
    std::string state, function;    ///< its line in the table
  };
  /// `variance`: of the value, from the number of events that it has.
  void add_old(const Stack& stack, double value, double variance);
  void add_new(const Stack& stack, double value);
  /// `value`: in this part of the run, per second of that part.
  void add_slice(const Stack& stack, std::size_t slice, double value);

  struct Change {
    std::string state, function;
    std::string path;  ///< the stack with the largest change, folded
    double before = 0, now = 0, noise = 0;
    double change() const { return now - before; }
    bool is_real() const;
  };
  /// Those above the noise, the largest first.
  std::vector<Change> changes() const;
  bool knows_noise() const { return slices_.size() >= kLeastSlices; }
  double before() const { return before_; }
  double now() const { return now_; }
  std::uint64_t cut() const { return cut_; }

  /// The differential flame graph. The title's notes follow what says how to read it.
  std::string svg(const PictureTitle& title) const;

 private:
  struct Cell {
    double before = 0, variance = 0, now = 0;
    std::array<float, kMostSlices> slices{};
    void add(const Cell& more);
  };
  struct Node {
    std::uint32_t parent = 0, name = 0;
    Cell own;
  };
  using Row = std::pair<std::string, std::string>;

  template <class Add>
  void add(const Stack& stack, const Add& add);
  double noise(const Cell& cell) const;
  std::vector<Cell> sums() const;

  std::vector<double> slices_;
  double length_ = 0, ratio_ = 1;  ///< of this run; to the recorded one
  std::vector<Node> nodes_{1};     ///< parents before children; the first is the root
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  struct Line {
    Cell cell;
    std::map<std::uint32_t, double> by_node;  ///< change by stack
  };
  std::map<Row, Line> rows_;
  double before_ = 0, now_ = 0;
  std::uint64_t cut_ = 0;
};

/// How differential flame graphs look: their styles, also "same" and "gone", and that of a certain
/// change, as a part of the largest one.
std::string_view difference_css();
std::string_view difference_style(double change, bool gone);

/// "12.3 ms/s"
std::string per_second(double ns);

}  // namespace coretap
