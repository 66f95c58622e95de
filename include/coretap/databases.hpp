// Servers of databases, for tools with bpf/lib/database.bpf.h.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "coretap/hooks.hpp"
#include "coretap/options.hpp"

namespace coretap {

/// mysql (MariaDB, too), postgres; by enum database_server.
extern const std::array<std::string_view, 2> kDatabases;
/// What a client asks for, by its number (bpf/lib/database.h).
std::string database_command(std::uint32_t number);

/// `texts`: of what is executed by a number, too.
template <bool Texts>
Hook database_hook();
/// For Tool::look_up.
template <bool Texts>
Result<void> look_up_databases(Config& config, Setting roles);
template <class Rodata, bool Texts>
Result<void> look_up_databases(Config& config) {
  return look_up_databases<Texts>(config, setting(&Rodata::target_roles));
}
/// DATABASE, or the number of a process.
Positional database_argument();
/// A threshold in milliseconds, behind the number of a process only: bcc's other tools take more
/// processes there.
Positional query_threshold(Setting target);
Option database_option();

/// What a description says of it all.
extern const std::string_view kDatabaseWords;

}  // namespace coretap
