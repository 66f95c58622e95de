// Histograms of waits, by state (--latency).
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "coretap/histogram.hpp"
#include "coretap/schema.hpp"
#include "tools/cpu/walltime/accounts.hpp"

namespace coretap {

struct Session;

class WallLatency {
 public:
  /// The index of a cell's state (wall::states()).
  using StateOf = std::function<std::size_t(const WallCell&)>;

  void configure(Session& s);
  void size_maps(Session& s) const;
  bool wanted() const { return wanted_; }
  /// The waits that have ended since the last time, the most frequent state last.
  void show(Session& s, std::string_view time, const StateOf& state_of);

  static JsonKind json();

 private:
  std::map<WallCell, hist> before_;
  bool wanted_ = false;
};

}  // namespace coretap
