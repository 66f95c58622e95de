// Values as C writes them down: "(struct path){.mnt = 0xffff8881, .dentry = 0xffff8882}", with
// names of enumerators, bit fields, and without members that are zero.
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

/// What the bytes of a type mean. It needs the kernel's type information no more.
struct Layout {
  enum Kind { number, pointer, array, record, unknown } kind = unknown;
  std::string name = {};  ///< of a member
  std::string type = {};  ///< of a record: "struct path"; empty: it has no name
  std::uint32_t at = 0;   ///< bits, from the start of the record or array that it is in
  std::uint32_t bits = 0;
  bool is_signed = false, truth = false, character = false;
  Btf::Enumerators words = {};
  std::uint32_t count = 0;         ///< of an array's elements
  std::vector<Layout> inner = {};  ///< members; of an array its first element
};

/// Of a value, or of what it leads to; `bytes`: what follows them does not matter.
std::shared_ptr<const Layout> layout_of(const Btf& btf, const Output& output, std::uint32_t bytes);

/// One value, in one line; or in several, of which the first has no indentation.
std::string typed(const Layout& layout, const Output& output, const Shown& value, bool one_line);

}  // namespace coretap::expression
