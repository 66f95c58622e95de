// Arguments of system calls that are flags, or one of some numbers, in words: the only table of
// them.
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
  std::uint64_t field = 0;  ///< bits that have this value together; 0: those of the value itself

  std::uint64_t mask() const { return field ? field : value; }
};

/// Flags of open(2), some of which have another's bit as part of them: those come first.
std::span<const FlagWord> open_flag_words();
/// Attributes of a mount, in struct mount_attr of mount_setattr(2).
std::span<const FlagWord> mount_attribute_words();

/// "O_WRONLY|O_CREAT|O_TRUNC"; bits without a name as one hexadecimal number, nothing as "0".
std::string flag_words(std::span<const FlagWord> words, std::uint64_t value);

/// An argument as strace writes it, by its number: "AF_INET"; nullopt: it has no words.
std::optional<std::string> argument_words(std::string_view call, std::size_t number,
                                          std::span<const std::uint64_t> arguments);

/// "SIGSEGV", "SIGRTMIN+1"
std::string signal_name(int number);
/// Of a signal by its name, with or without SIG, or its number; 0: there is none.
int signal_number(std::string_view text);

}  // namespace coretap
