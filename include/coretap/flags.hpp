// Names for system call arguments that are flags or enumerations: the only such
// table.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace coretap {

struct FlagWord {
  std::string_view name;
  std::uint64_t value;
  std::uint64_t field = 0;  ///< mask for comparing the value; 0: the bits of the value itself

  std::uint64_t mask() const { return field ? field : value; }
};

/// Flags of open(2). Some include another flag's bit: those come first.
std::span<const FlagWord> open_flag_words();
/// True if open(2) with these flags reads its argument mode: it may create a file.
bool open_reads_mode(std::uint64_t flags);
/// Attributes of a mount, in struct mount_attr of mount_setattr(2).
std::span<const FlagWord> mount_attribute_words();

/// "O_WRONLY|O_CREAT|O_TRUNC"; bits without a name as one number in this format, zero as "0".
std::string flag_words(std::span<const FlagWord> words, std::uint64_t value,
                       std::string_view format = "{:#x}");

/// An argument, by its index, as strace prints it: "AF_INET"; nullopt: it has no names.
std::optional<std::string> argument_words(std::string_view call, std::size_t number,
                                          std::span<const std::uint64_t> arguments);

/// "SIGSEGV", "SIGRTMIN+1"
std::string signal_name(int number);
/// Number of a signal from its name, with or without SIG, or from its number; 0: no such signal.
int signal_number(std::string_view text);

}  // namespace coretap
