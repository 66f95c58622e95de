#include "coretap/databases.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/known_functions.hpp"
#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"
#include "lib/targets/database.h"

namespace coretap {

const std::array<std::string_view, 2> kDatabases = {"mysql", "postgres"};

const std::string_view kDatabaseWords =
    "Servers are found by the names of their programs (mariadbd, mysqld, postgres): those that are "
    "installed and those that run, in containers too. What is traced are functions that they "
    "export: dispatch_command of MariaDB and MySQL, pgstat_report_activity and PortalRun of "
    "PostgreSQL. A server without these symbols (linked statically and stripped) cannot be "
    "traced.\n\n"
    "A query of MySQL and MariaDB lasts from dispatch_command to its return: simple queries, and "
    "statements that are prepared or executed. One of PostgreSQL lasts from its first message "
    "(simple query, or parse, bind and execute) until the server waits for the next one, so that "
    "the commit counts; in a pipeline, until its portal was run. Queries that were under way at "
    "the start are not seen, nor are those of the PostgreSQL server's own background workers.";

namespace {

/// The parsed command line.
struct Words {
  bool process = false;     // the first word was a process id
  std::string_view server;  // a name in kDatabases; empty: all
};

constexpr std::string_view kDispatch[] = {
    "_Z16dispatch_command19enum_server_commandP3THDPcjb",   // MariaDB since 10.5
    "_Z16dispatch_command19enum_server_commandP3THDPcjbb",  // since 10.2
    "_Z16dispatch_command19enum_server_commandP3THDPcj",    // MySQL 5.6
};
constexpr std::string_view kDispatchData =
    "_Z16dispatch_commandP3THDPK8COM_DATA19enum_server_command";  // MySQL since 5.7
constexpr std::string_view kStatement = "_ZN11Query_cache21send_result_to_clientEP3THDPcj";

/// Directories where distributions install servers that are not in PATH.
std::vector<std::string> installed(std::string_view program) {
  std::vector<std::string> all;
  for (auto* directory : {"/usr/sbin", "/usr/libexec", "/usr/local/libexec"})
    all.push_back(fmt::format("{}/{}", directory, program));
  for (auto* versions : {"/usr/lib/postgresql", "/usr"}) {
    std::error_code error;
    for (std::filesystem::directory_iterator i(versions, error), end; !error && i != end;
         i.increment(error))
      if (auto name = i->path().filename().string();
          name.starts_with("pgsql-") || std::string_view(versions) != "/usr")
        all.push_back(fmt::format("{}/bin/{}", i->path().string(), program));
  }
  std::erase_if(all, [](auto& path) {
    std::error_code error;
    return !std::filesystem::is_regular_file(path, error);
  });
  return all;
}

std::vector<KnownFunction> functions_in(std::string_view file, database_server server, bool texts) {
  if (server == DB_POSTGRES)
    return {{file, "pgstat_report_activity", DB_ACTIVITY, KnownFunction::entry},
            {file, "PortalRun", DB_PORTAL}};
  std::vector<KnownFunction> all = {{file, kDispatchData, DB_DISPATCH_DATA}};
  for (auto name : kDispatch) all.push_back({file, name, DB_DISPATCH});
  if (texts) all.push_back({file, kStatement, DB_STATEMENT, KnownFunction::entry});
  return all;
}

std::vector<std::string> words(const Config& config, bool texts) {
  static constexpr std::pair<std::string_view, database_server> kPrograms[] = {
      {"mariadbd", DB_MYSQL}, {"mysqld", DB_MYSQL}, {"postgres", DB_POSTGRES}};
  auto wanted = config.own<Words>().server;
  std::vector<KnownFunction> functions;
  std::vector<std::string> paths;
  for (auto& server : kPrograms)
    for (auto& path : installed(server.first)) paths.push_back(path);
  for (auto& server : kPrograms) {
    if (!wanted.empty() && wanted != kDatabases.at(server.second)) continue;
    auto add = [&](std::string_view file) {
      for (auto& f : functions_in(file, server.second, texts)) {
        f.installed = file != server.first;
        functions.push_back(f);
      }
    };
    add(server.first);
    for (auto& path : paths)
      if (path.ends_with(fmt::format("/{}", server.first))) add(path);
  }
  return words_for(config, functions);
}

TargetWords words_of(bool texts) {
  if (texts) return [](const Config& config) { return words(config, true); };
  return [](const Config& config) { return words(config, false); };
}

std::uint8_t role(std::string_view name) {
  auto all = functions_in({}, DB_MYSQL, true);
  auto role = role_in(all, name);
  return role ? role : role_in(functions_in({}, DB_POSTGRES, false), name);
}

Result<void> choose(Config& config, std::string_view text) {
  auto* server = std::ranges::find(kDatabases, text);
  if (server == kDatabases.end())
    return Error{fmt::format("--database: '{}' is no database that is known", printable(text)),
                 {},
                 "give mysql (MariaDB, too) or postgres",
                 kUsage};
  config.own<Words>().server = *server;
  config.give("database", text);
  return {};
}

}  // namespace

std::string database_command(std::uint32_t number) {
  static constexpr std::string_view kNames[] = {
      "sleep",        "quit",       "init_db",     "query",      "field_list",   "create_db",
      "drop_db",      "refresh",    "shutdown",    "statistics", "process_info", "connect",
      "process_kill", "debug",      "ping",        "time",       "insert",       "change_user",
      "binlog_dump",  "table_dump", "connect_out", "register",   "prepare",      "execute",
      "long_data",    "close",      "reset",       "set_option", "fetch",        "daemon"};
  if (number < std::size(kNames)) return std::string(kNames[number]);
  if (number == DB_BULK_EXECUTE) return "bulk_execute";
  return number == DB_PARSE ? "parse" : std::to_string(number);
}

Hook database_hook(bool texts) {
  return known_functions("queries of database servers",
                         {ProgramName("target_user"), ProgramName("target_user_return")},
                         words_of(texts), "give the path of a server's program with --library");
}

Result<void> look_up_databases(Config& config, bool texts, Setting roles) {
  return set_roles(config, words_of(texts), role, roles);
}

Positional database_argument() {
  return {.metavar = "DATABASE",
          .doc = "mysql (MariaDB, too) or postgres; a number: the process to trace, as --pid",
          .apply = [](Config& config, std::string_view text) -> Result<void> {
            if (!parse_unsigned(text)) return choose(config, text);
            config.own<Words>().process = true;
            return shared::pid().apply(config, text);
          }};
}

Positional query_threshold(Setting target) {
  auto threshold = shared::threshold(
      "MS", kMillisecond, "behind the number of a process: milliseconds, as --threshold", target);
  threshold.apply = [take = threshold.apply](Config& config,
                                             std::string_view text) -> Result<void> {
    if (!config.own<Words>().process)
      return Error{fmt::format("'{}' is one word too many", printable(text)),
                   {},
                   "processes are given as -p PID,PID, milliseconds by --threshold",
                   kUsage};
    return take(config, text);
  };
  return threshold;
}

Option database_option() {
  auto option = value(0, "database", "NAME",
                      "only servers of this kind: mysql (MariaDB, too), postgres", choose);
  return one_of(std::move(option), [] {
    std::vector<Completion> all;
    all.reserve(kDatabases.size());
    for (auto name : kDatabases) all.push_back({std::string(name)});
    return all;
  });
}

}  // namespace coretap
