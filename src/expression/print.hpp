// Message formats: printf's conversions for integers, characters and text, and %K, %U (name of a
// kernel or user function), %I (an IP address), %E (an errno).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "expression/compile.hpp"
#include "lib/targets/expression.h"

namespace coretap::expression {

struct Conversion {
  std::string before;  ///< plain text in front of it
  char kind = 'd';     ///< d u x X o c s p K U I E
  bool left = false, sign = false, blank = false, alternate = false, zeros = false;
  std::size_t width = 0;
  int precision = -1;  ///< -1: none
  int bytes = 0;       ///< from its length modifier; 0: none

  Wanted wanted() const {
    return kind == 's' ? Wanted::text : kind == 'I' ? Wanted::address : Wanted::number;
  }
};

struct MessageFormat {
  std::vector<Conversion> conversions;
  std::string rest;  ///< text after the last conversion
};
/// `text` is the whole command-line argument, in which the format starts at `at`; for errors.
Result<MessageFormat> parse_format(const std::string& format, std::string_view text,
                                   std::size_t at);

/// One value of a record.
struct Shown {
  std::uint64_t number = 0;
  std::string text = {};  ///< of Output::text and Output::bytes
  bool fault = false;     ///< "(fault)"
  bool cut = false;       ///< "..." is appended
};

/// Value `index` of `out`, described by `output`; its text is in `out`, of which at most
/// `text_bytes` are shown. `room`: bytes of the record from `out` on; a value beyond them cannot
/// be read.
Shown value_of(const expression_out& out, std::size_t index, const Output& output,
               std::uint32_t text_bytes, std::size_t room);

/// Converts addresses to names.
using NameAddress = std::function<std::string(std::uint64_t address)>;
struct Namers {
  NameAddress kernel = {}, user = {};
};

/// Formats one value by its conversion.
std::string show(const Conversion& conversion, const Output& output, const Shown& value,
                 const Namers& namers);
/// Formats the message with all values.
std::string render(const MessageFormat& format, const std::vector<Output>& outputs,
                   const std::vector<Shown>& values, const Namers& namers);

}  // namespace coretap::expression
