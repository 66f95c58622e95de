// Runs a tool's workloads, held until it is attached, and compares its output with their counts:
// shown events plus those reported as not shown must be all events.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "stress/row.hpp"
#include "tools/machine.hpp"

namespace coretap::stress {

/// Causes in the ledger that count events which are not shown.
inline constexpr const char* kNotShown[] = {"lost", "untracked", "unmatched", "overwritten",
                                            "unread"};

struct Outcome {
  std::string tool, trouble, result, reason;
  std::uint64_t truth = 0, shown = 0, missed = 0;
  std::map<std::string, std::uint64_t> not_shown;
  double seconds = 0;

  std::uint64_t seen() const;
  std::string sum() const;  ///< "40000 = 39000 + 1000 lost"
};

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// CLOCK_MONOTONIC, as tools show it.
std::uint64_t now_ns();

/// The workloads of a row, and the options that make its tool trace them.
class Scene {
 public:
  struct Size {
    std::uint64_t events;  ///< of each workload
    int workloads, first_cpu = 0;
    Strings more = {};  ///< arguments of each workload
  };
  Scene(const Row& row, const Size& size);

  const Row& row() const { return row_; }
  std::vector<std::unique_ptr<Load>>& loads() { return loads_; }
  Strings options(const Strings& more = {});

  void release();
  void finish();  ///< waits until all have printed their truth
  /// Tracing continued until now, after the workloads ended.
  void traced_until_now() { ended_ns_ = now_ns(); }
  /// None: unknown for this row. Skips the test if nothing happened.
  std::optional<std::uint64_t> truth();

  /// Checks the tool's --json output; throws Wrong.
  Outcome judge(const std::string& out);

 private:
  void check_times(const Json& line) const;

  const Row& row_;
  std::optional<tooltest::Cgroup> cgroup_;
  std::optional<tooltest::Trace> trace_;
  std::vector<std::unique_ptr<Load>> loads_;
  std::uint64_t began_ns_ = 0, ended_ns_ = 0;
};

}  // namespace coretap::stress
