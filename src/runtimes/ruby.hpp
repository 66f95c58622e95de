// Ruby in an ELF file (libruby, or a program that contains it), and the lines of its code.
// Untrusted input.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/stack/runtime.h"
#include "runtimes/v8.hpp"

namespace coretap::runtimes {

constexpr std::string_view kRubyMark = "rb_current_receiver";

/// Nothing if the file does not contain Ruby. Other versions than 3.1 to 3.4, and builds whose code
/// is not as expected, have ruby_layout::frame 0. `base`: as for runtime_in().
std::optional<runtime_file> ruby_in(int fd, std::uint64_t base);

/// The variable of each thread that points to its execution context (struct
/// rb_execution_context_struct, vm_core.h in Ruby's sources).
struct RubyVariable {
  std::optional<std::uint64_t> index;  ///< of a library: address of its tls_index (ELF TLS ABI)
  std::int64_t offset = 0;             ///< in the library's block, or from the thread pointer
};
/// From the code of rb_current_receiver() at `address`, which reads it first: Ruby does not export
/// it in all versions. Nothing: the code is not as expected.
std::optional<RubyVariable> ruby_variable_in(std::string_view code, std::uint64_t address);

/// The address of the array of names by their numbers, from code of rb_id2str(), or of the function
/// that it ends with. 0: it is not there.
std::uint64_t ruby_names_in(std::string_view code, std::uint64_t address);

/// A table of lines as the kernel program sent it, or read from the process if it is longer. Empty:
/// there is none, or no more than `most` bytes.
std::string ruby_lines_of(std::string_view sent, pid_t pid, const ReadMemory& read,
                          std::size_t most);

/// The line of a place in the code, in words. `table`: from ruby_lines_of().
std::optional<std::uint32_t> ruby_line(std::string_view table, std::uint32_t place);

}  // namespace coretap::runtimes
