// Values in C syntax: "(struct path){.mnt = 0xffff8881, .dentry = 0xffff8882}", with enumerator
// names and bit fields, without members that are zero.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "expression/compile.hpp"
#include "expression/print.hpp"
#include "kernel/btf.hpp"

namespace coretap::expression {

/// Layout of a type. It does not refer to the kernel's type information.
struct Layout {
  enum Kind { number, pointer, array, record, unknown } kind = unknown;
  std::string name = {};  ///< of a member
  std::string type = {};  ///< of a record: "struct path"; empty: it has no name
  std::uint32_t at = 0;   ///< offset in bits in the enclosing record or array
  std::uint32_t bits = 0;
  bool is_signed = false, truth = false, character = false;
  Btf::Enumerators words = {};
  std::uint32_t count = 0;         ///< number of array elements
  std::vector<Layout> inner = {};  ///< members; for an array its first element
};

/// Layout of a value or of its pointer's target; data after `bytes` is ignored.
std::shared_ptr<const Layout> layout_of(const Btf& btf, const Output& output, std::uint32_t bytes);

/// Formats one value, in one line or in several; the first line is not indented.
std::string typed(const Layout& layout, const Output& output, const Shown& value, bool one_line);

}  // namespace coretap::expression
