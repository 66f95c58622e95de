// Functions and types of user programs from debug information (DWARF), read with libdw: the format
// is large and grows with each compiler. The library is loaded only when an argument with an
// expression names a user function: other tools start as fast without it.
//
// Root reads files that untrusted users have written. libdw gets a bounded copy of their sections
// (debug_sections.hpp). The numbers of units, abbreviations and attributes are checked first: libdw
// spends unbounded memory and time on them. All searches in one file have ten seconds of CPU time.
// One gap remains: a single step of libdw may scan a whole unit, which takes seconds in a unit of
// 100 MB whose entries have the maximum number of attributes.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "expression/types.hpp"

namespace coretap::expression {

/// A user function as its debug information declares it.
struct UserFunction {
  /// Parameters in integer registers, in the order of the calling convention; empty name: unknown.
  std::vector<Parameter> parameters;
  /// Parameters that are not in integer registers: name and reason.
  std::map<std::string, std::string> elsewhere;
  TypePtr result;                           ///< null: not known
  std::shared_ptr<const NamedTypes> types;  ///< types of the same program
};

/// The function that starts at this offset of an ELF file, open as `fd`, which the caller keeps.
/// The debug information is in the file, or in a separate file: one with the same build id below
/// `debug_root`, or the one in .gnu_debuglink, checked by its checksum. On error, `what` is the
/// reason.
Result<UserFunction> user_function(int fd, std::uint64_t offset,
                                   const std::string& debug_root = "/usr/lib/debug");

}  // namespace coretap::expression
