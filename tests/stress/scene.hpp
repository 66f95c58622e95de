// A tool's workloads, held until it is attached, and what it then printed against what they did:
// all that it shows and all that it counts as not shown are what happened.
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

/// What a ledger's causes are called that stand for events which are not shown.
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

/// The workloads of a row, and how its tool is given them.
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
  void finish();  ///< until all have said their truth
  /// Tracing went on until now, after the workloads' end.
  void traced_until_now() { ended_ns_ = now_ns(); }
  /// None: it cannot be known of this row. Skips where nothing happened.
  std::optional<std::uint64_t> truth();

  /// What the tool printed with --json; throws Wrong.
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
