// The capabilities (capabilities(7)) that a tool needs; the others are dropped after attaching.
#pragma once
#include <string_view>
#include <vector>

#include "coretap/tool.hpp"
#include "kernel/capabilities.hpp"

namespace coretap {

struct Session;

struct NeededCapability {
  Capability capability;
  std::string_view purpose;  ///< "names of kernel functions"
  bool always;               ///< the tool does not run without it; false: it is limited
  bool operator==(const NeededCapability&) const = default;
};
/// Derived from the kernel program and the reports of the tool.
std::vector<NeededCapability> needed_capabilities(const Tool& tool);

/// After everything is attached: keeps `s.retained`, and CAP_BPF if this kernel requires it for
/// reading a map.
void drop_capabilities(Session& s);

}  // namespace coretap
