// Functions and USDT probes that a tool knows by name and traces in all
// files that define them: hooks for the programs of bpf/lib/targets/roles.bpf.h.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/hooks.hpp"
#include "coretap/options.hpp"
#include "coretap/result.hpp"

namespace coretap {

struct KnownFunction {
  std::string_view file;  ///< "libssl.so", "mariadbd", a path
  std::string_view name;  ///< for a USDT probe "PROVIDER:PROBE"
  std::uint8_t role;      ///< role in the kernel program; not 0
  enum At { entry, both, probe } at = both;
  /// A path where the file may be installed: not used with --library,
  /// and with --pid only if those processes have no match.
  bool installed = false;
};

/// Words for the functions available here: of each file that is installed or
/// in use by a process (or given by --library, --pid) those that it has. With
/// `programs` the programs of --pid are searched, too, whatever their names.
std::vector<std::string> words_for(const Config& config, std::span<const KnownFunction> functions,
                                   bool programs = false);

/// The hook; `words` calls words_for(). If it returns none, `instead` is the advice.
Hook known_functions(std::string_view name, std::vector<ProgramName> programs, TargetWords words,
                     std::string_view instead);

using RoleOf = std::uint8_t (*)(std::string_view name);
/// For Tool::look_up: `roles` is target_roles.
Result<void> set_roles(Config& config, TargetWords words, RoleOf role, Setting roles);

/// For RoleOf.
std::uint8_t role_in(std::span<const KnownFunction> functions, std::string_view name);

}  // namespace coretap
