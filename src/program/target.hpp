// Targets on the command line: words in the spellings of bcc, and the patterns that match
// names.
#pragma once
#include <regex.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "coretap/result.hpp"

namespace coretap {

/// The parts of one word.
///   FUNCTION, p::FUNCTION              function of the kernel or of any module
///   MODULE:FUNCTION, LIBRARY:FUNCTION  function of a kernel module, else of a library or program
///   FUNCTION+OFFSET                    place within any of these; hexadecimal after 0x
///   LIBRARY:0xADDRESS                  the same by address, as in the file's symbols
///   t:CATEGORY:EVENT                   tracepoint
///   u:LIBRARY:[PROVIDER:]PROBE         USDT probe; without LIBRARY in the files of --pid
/// `r` in place of `p` means returns. LIBRARY may be a path.
struct TargetWord {
  enum Kind { function, tracepoint, usdt } kind = function;
  bool at_return = false;
  std::string place;         ///< module, library, path or category; empty: the kernel, or --pid
  std::string provider;      ///< of a USDT probe; empty: any
  std::string name;          ///< a pattern; the word itself for an address
  std::uint64_t within = 0;  ///< bytes from the function's start
  std::optional<std::uint64_t> address = {};

  bool is_place() const { return within || address; }
};
/// `regular_expression`: names are regular expressions, where + and digits have another meaning.
Result<TargetWord> parse_target(std::string_view word, bool regular_expression = false);

/// A pattern for names: `*` matches any text; or a regular expression (POSIX extended), which
/// has to match from the start of the name.
class NamePattern {
 public:
  static Result<NamePattern> make(std::string_view text, bool regular_expression);

  bool matches(const char* name) const;
  bool matches(const std::string& name) const { return matches(name.c_str()); }
  /// True if it is a single name without wildcards.
  bool exact() const { return exact_; }
  const std::string& text() const { return text_; }

 private:
  NamePattern() = default;

  std::string text_;
  bool exact_ = false;
  std::shared_ptr<regex_t> expression_;  ///< null: wildcards
};

/// True if `name` matches; each `*` of the pattern matches any text.
bool matches_wildcard(std::string_view pattern, std::string_view name);

}  // namespace coretap
