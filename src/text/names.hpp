// Names for numbers of this kernel: enums, flags, disks. Values and stacks as text.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/errors.hpp"
#include "coretap/fields.hpp"
#include "coretap/result.hpp"
#include "coretap/symbols.hpp"

namespace coretap {

class Kernel;

class Names {
 public:
  Names();

  using Enumerators = std::vector<std::pair<std::string, std::int64_t>>;

  /// Reads the names that a format needs, while the kernel's type information is loaded.
  void learn(const Format& format, Kernel& kernel);
  void learn(std::string_view type, Enumerators values);

  /// True for a kernel address that this process must not show. The first time, calls `tell_hidden`
  /// with the reason. That is determined while this process has all its capabilities: by learn() if
  /// a format needs it, else by ask_hidden().
  bool hides(std::uint64_t address) const;
  void ask_hidden() const;
  std::function<void(const Error&)> tell_hidden;
  std::vector<std::string> targets;                  ///< the targets, for Format::target
  std::function<std::optional<Error>()> why_hidden;  ///< called once; tests replace it

  FieldContext context;  ///< for functions that read fields

  /// A value in the format for text output; only for formats that name things.
  std::string name(const Format& format, std::uint64_t value) const;

 private:
  const Enumerators& values_of(std::string_view type) const;
  /// A block request's flag, and its operation without the prefix; empty: not known.
  bool has_flag(std::uint64_t flags, std::string_view flag) const;
  std::string_view operation(std::uint64_t flags) const;
  std::string enumerator(const Format& format, std::uint64_t value) const;
  std::string gfp(std::uint64_t flags) const;
  std::string block_flags(std::uint64_t flags) const;
  std::string rwbs(std::uint64_t flags) const;
  std::string symbol(std::uint64_t address) const;

  std::map<std::string, Enumerators, std::less<>> enums_;
  mutable std::optional<std::optional<Error>> hidden_;  ///< determined?, and why
  mutable std::unique_ptr<KernelSymbols> symbols_;      ///< opened by learn()
  mutable bool told_ = false;
};

inline constexpr std::string_view kHiddenAddress = "[hidden]";

/// True if the format shows a number as a name.
bool names_things(const Format& format);

/// True if the value is an address that must not be shown.
inline bool hidden(const Format& format, std::uint64_t n, const Names& names) {
  return format.kind == Format::pointer && names.hides(n);
}

/// For tables: appends the value, aligned to the format's width.
void show(std::string& line, const Format& format, const Value& value, const Names& names);
std::string show(const Format& format, const Value& value, const Names& names);

/// Frames on one line, the outermost first, joined by semicolons; after `before` if that is not
/// empty.
std::string folded(const Frames& frames, std::string before = {});

/// A frame on a separate line.
std::string frame_line(std::string_view frame);

}  // namespace coretap
