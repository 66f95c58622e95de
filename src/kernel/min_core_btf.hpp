// The few kernel types that one BPF program's relocations refer to. libbpf would read, copy and
// search all of them (5 MB, half of the startup time). Does at startup what bpftool gen
// min_core_btf does at build time for one kernel.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "kernel/btf.hpp"

namespace coretap {

/// The sections .BTF and .BTF.ext of a kernel object, within its bytes; empty: it has none.
struct ObjectTypes {
  std::string_view types, relocations;
};
ObjectTypes object_types(const void* object, std::size_t size);

/// BTF that resolves the object's CO-RE relocations as the kernel's own does. Empty: impossible
/// (not an object, or it needs ids of the kernel's types).
std::string trimmed_types(const Btf& kernel, const void* object, std::size_t size);

}  // namespace coretap
