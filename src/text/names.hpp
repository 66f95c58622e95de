// Numbers of this kernel by their names: enums, flags, disks.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/fields.hpp"
#include "coretap/result.hpp"
#include "coretap/symbols.hpp"

namespace coretap {

class Kernel;

class Names {
 public:
  Names();

  using Enumerators = std::vector<std::pair<std::string, std::int64_t>>;

  /// Learns what a format needs, while the kernel's type information is loaded.
  void learn(const Format& format, Kernel& kernel);
  void learn(std::string_view type, Enumerators values);

  /// Is it an address of the kernel that this process is not to see? The first time `tell_hidden`
  /// hears why. That is asked while this process has all its rights: by learn() where a format
  /// needs it, else by ask_hidden().
  bool hides(std::uint64_t address) const;
  void ask_hidden() const;
  std::function<void(const Error&)> tell_hidden;
  std::vector<std::string> targets;                  ///< what is traced, for Format::target
  std::function<std::optional<Error>()> why_hidden;  ///< asked once; tests have another

  FieldContext context;  ///< for readers of fields

  /// A value as the format shows it to people; only for formats that name things.
  std::string name(const Format& format, std::uint64_t value) const;

 private:
  std::string enumerator(const Format& format, std::uint64_t value) const;
  std::string gfp(std::uint64_t flags) const;
  std::string block_flags(std::uint64_t flags) const;
  std::string rwbs(std::uint64_t flags) const;
  std::string symbol(std::uint64_t address) const;

  std::map<std::string, Enumerators, std::less<>> enums_;
  mutable std::optional<std::optional<Error>> hidden_;  ///< asked?, and why
  mutable std::unique_ptr<KernelSymbols> symbols_;      ///< opened by learn()
  mutable bool told_ = false;
};

inline constexpr std::string_view kHiddenAddress = "[hidden]";

/// Of an error that only the kernel sees: the call is restarted, or a signal's handler decides.
std::string_view restart_name(int error);
/// "ENOENT"; what the C library does not know keeps its number; 0 stays 0.
std::string error_name(int error);
/// An errno by its name or number; none if there is no such.
std::optional<int> error_number(std::string_view text);

/// Does the format show a number by a name?
bool names_things(const Format& format);

/// Is it an address that is not to be shown?
inline bool hidden(const Format& format, std::uint64_t n, const Names& names) {
  return format.kind == Format::pointer && names.hides(n);
}

/// For tables: appended, aligned to the format's width.
void show(std::string& line, const Format& format, const Value& value, const Names& names);
std::string show(const Format& format, const Value& value, const Names& names);

}  // namespace coretap
