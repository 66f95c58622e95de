// Which capabilities (capabilities(7)) a tool needs, and giving up the others once it is attached.
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
  bool always;               ///< without it the tool does not run; else it can do less
};
/// What a tool asks for, by what its kernel program and its reports are made of.
std::vector<NeededCapability> needed_capabilities(const Tool& tool);

/// When all is attached: keeps what `s.retained` says, and CAP_BPF where this kernel asks for it at
/// each look into a map.
void drop_capabilities(Session& s);

}  // namespace coretap
