// Functions and types of user programs by their debug information (DWARF). libdw reads it: the
// format is large and grows with each compiler. The library is loaded when a word with an
// expression names a user function, and not before: other tools start as fast without it.
//
// Root reads files that untrusted users have written. libdw gets a bounded copy of their sections
// (debug_sections.hpp). Before it reads them, the numbers of units, abbreviations and attributes
// are checked: libdw spends memory and time on them without a bound. All searches in one file have
// ten seconds of CPU time. One gap stays: a single step of libdw may go through a whole unit, which
// takes seconds in a unit of 100 MB whose entries have the most attributes.
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
  /// By integer registers, in the order of the calling convention; without a name: not known.
  std::vector<Parameter> parameters;
  /// Parameters that are in no such register: name and reason.
  std::map<std::string, std::string> elsewhere;
  TypePtr result;                           ///< null: not known
  std::shared_ptr<const NamedTypes> types;  ///< of the same program
};

/// The function that starts at this offset of an ELF file, which is open as `fd` and stays the
/// caller's. The debug information is in the file, or in a separate file: that of the same build id
/// below `debug_root`, or that which it names (.gnu_debuglink), by its checksum. An error says in
/// `what` why nothing is known.
Result<UserFunction> user_function(int fd, std::uint64_t offset,
                                   const std::string& debug_root = "/usr/lib/debug");

}  // namespace coretap::expression
