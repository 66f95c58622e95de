// Names for numbers: flags and other arguments of system calls, signals, capabilities.
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
/// Flags of clone3(2), without the signal that clone(2) has in the lowest byte.
std::span<const FlagWord> new_task_words();
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

/// Capabilities (capabilities(7)), by number from 0 on.
std::span<const FlagWord> capability_words();
/// Name of any capability; the number itself if it is newer than this program.
std::string capability_name(std::uint64_t number);
/// Accepts "CAP_KILL", "kill", "5"; nullopt if this kernel has no such capability.
std::optional<std::uint64_t> capability_number(std::string_view text);
/// The highest capability number of this kernel.
std::uint64_t last_capability();

}  // namespace coretap
