// Functions and USDT probes that a tool knows by name and traces in whichever files have them:
// hooks for the programs of bpf/lib/roles.bpf.h.
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
  std::string_view name;  ///< of a USDT probe "PROVIDER:PROBE"
  std::uint8_t role;      ///< what the kernel program takes it for; not 0
  enum At { entry, both, probe } at = both;
  /// A path where the file may be installed: not with --library, and with --pid only if those
  /// processes have nothing.
  bool installed = false;
};

/// Words for what is here: of each file that is installed or that a process uses (or --library,
/// --pid) those functions that it has. With `programs` they are looked for in the programs of
/// --pid, too, whatever their names are.
std::vector<std::string> words_for(const Config& config, std::span<const KnownFunction> functions,
                                   bool programs = false);

/// The hook; `words` calls words_for(). Where there are none, `instead` says what to do.
Hook known_functions(std::string_view name, std::vector<std::string_view> programs,
                     TargetWords words, std::string_view instead);

using RoleOf = std::uint8_t (*)(std::string_view name);
/// For Tool::look_up: `roles` is target_roles.
Result<void> set_roles(Config& config, TargetWords words, RoleOf role, Setting roles);

/// For RoleOf.
std::uint8_t role_in(std::span<const KnownFunction> functions, std::string_view name);

}  // namespace coretap
