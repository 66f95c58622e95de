// Database servers, for tools with bpf/lib/targets/database.bpf.h.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "coretap/hooks.hpp"
#include "coretap/options.hpp"

namespace coretap {

/// mysql (also MariaDB), postgres; by enum database_server.
extern const std::array<std::string_view, 2> kDatabases;
/// Name of a client's command, by its number (bpf/lib/targets/database.h).
std::string database_command(std::uint32_t number);

/// `texts`: also texts of prepared statements, which are executed by number.
Hook database_hook(bool texts);
/// For Tool::look_up.
Result<void> look_up_databases(Config& config, bool texts, Setting roles);
template <class Rodata, bool Texts>
Result<void> look_up_databases(Config& config) {
  return look_up_databases(config, Texts, setting(&Rodata::target_roles));
}
/// DATABASE, or a pid.
Positional database_argument();
/// A threshold in milliseconds, only after a pid:
/// bcc's other tools accept more pids there.
Positional query_threshold(Setting target);
Option database_option();

/// Common part of the tools' descriptions.
extern const std::string_view kDatabaseWords;

}  // namespace coretap
