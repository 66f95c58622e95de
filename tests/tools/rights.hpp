// The capabilities that tools need, and those that a process has.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace coretap::tooltest {

struct Asked {
  int number;
  std::string name;
  bool always;
  bool probes;  ///< for functions of programs and libraries

  auto operator<=>(const Asked&) const = default;
};
/// From `coretap doctor`; one entry for each capability, and one more for probes. By number.
const std::vector<Asked>& asked_by(const std::string& tool);

/// CapPrm, CapEff and so on.
std::uint64_t capabilities_of(pid_t pid, const std::string& set);

}  // namespace coretap::tooltest
