// The few types of the kernel that one kernel program asks about. libbpf would read, copy and
// search all of them (5 MB, half of the time to start); what bpftool gen min_core_btf makes at
// build time for one kernel is made here at start for this one.
#pragma once
#include <cstddef>
#include <string>

#include "kernel/btf.hpp"

namespace coretap {

/// Type information that answers the object's CO-RE relocations as the kernel's own does. Empty: it
/// cannot (not an object, or it asks for ids of the kernel's types).
std::string trimmed_types(const Btf& kernel, const void* object, std::size_t size);

}  // namespace coretap
