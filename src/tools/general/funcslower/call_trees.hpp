// Assembles calls that arrive when they end, inner ones first, into one tree for each outermost
// call.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "general/funcslower.h"

namespace coretap {

/// A call in a tree. Fields read the node.
struct TreeCall {
  funcslower_node node;
  std::uint64_t id = 0;      ///< set when it is shown
  std::uint64_t caller = 0;  ///< id of the call around it; 0: none, or not kept
  std::uint64_t self_ns = 0;
  std::uint64_t omitted = 0;  ///< calls within it that were not kept
  bool has_calls = false;     ///< some within it are in the tree

  std::uint64_t start() const { return node.call.head.time_ns; }
  bool timed() const { return node.end != FUNCSLOWER_UNSEEN && node.end != FUNCSLOWER_EXEC; }
};

/// In the order in which the calls began.
using CallTree = std::vector<TreeCall>;

class CallTrees {
 public:
  static constexpr std::uint64_t kMostCalls = 1'000'000;  ///< of one tree
  static constexpr std::size_t kMostHeld = 1 << 18;       ///< of all trees under way

  /// `most`: calls kept of one tree.
  explicit CallTrees(std::size_t most) : most_(most) {}

  /// Adds a call. -> the trees that are complete, or that get no more records
  std::vector<CallTree> add(const funcslower_node& node);
  /// All that are left, as they are.
  std::vector<CallTree> rest();
  std::size_t held() const { return held_; }

 private:
  /// Calls that were not kept are counted at the next outer call. It arrives after them.
  struct Growing {
    std::uint64_t number = 0;   ///< of the tree
    std::uint64_t touched = 0;  ///< when its last call came
    CallTree calls;
    std::array<std::uint64_t, CALL_LEVELS + 1> omitted = {};    ///< by depth
    std::array<std::uint64_t, CALL_LEVELS + 1> last_kept = {};  ///< by depth: start
  };
  using ByThread = std::map<std::uint64_t, Growing>;

  CallTree take(ByThread::iterator tree);
  void add(Growing& tree, const funcslower_node& node) const;

  std::size_t most_;
  std::size_t held_ = 0;
  ByThread growing_;
};

}  // namespace coretap
