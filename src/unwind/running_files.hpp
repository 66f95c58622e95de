// Files that running processes have mapped as code: reads their tables in the background, the most
// frequently mapped ones first.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "symbols/proc_maps.hpp"

namespace coretap::unwind {

class RunningFiles {
 public:
  using Clock = std::chrono::steady_clock;
  explicit RunningFiles(std::string proc_root = "/proc") : proc_root_(std::move(proc_root)) {}

  /// Continues until `until`: first reads mappings of processes, then passes each file to `know`
  /// with a process that has mapped it; `know` returns whether there is room for more. False: all
  /// is done.
  bool go_on(Clock::time_point until,
             const std::function<bool(pid_t, const symbols::Mapping&)>& know);

 private:
  struct Mapped {
    symbols::Mapping mapping;
    pid_t by;
    std::size_t times;
  };
  bool count_next();

  std::string proc_root_;
  bool listed_ = false, sorted_ = false;
  std::vector<pid_t> processes_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, Mapped> by_inode_;
  std::vector<Mapped> files_;  // the next one is last
};

}  // namespace coretap::unwind
