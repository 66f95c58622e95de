// dbstat: durations of database queries, as histograms.
#include "app/dbstat.h"

#include "coretap/databases.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "dbstat.skel.h"

using namespace coretap;
using Key = dbstat_key;
using Opt = rodata_of<dbstat_bpf>;

namespace {

std::string command(const Key& key) { return database_command(key.command); }

}  // namespace

TOOL(dbstat) {
  static const std::string kDescription =
      "A log2 histogram of the query times of MariaDB, MySQL or PostgreSQL.\n\n" +
      std::string(kDatabaseWords);
  return {
      .name = "dbstat",
      .summary = "query times of MariaDB, MySQL and PostgreSQL, as histograms",
      .description = kDescription,
      .overhead = "two or three breakpoints per query, counted in the kernel",
      .examples = {{"dbstat", "all servers, until Ctrl-C"},
                   {"dbstat mysql -u", "of MariaDB and MySQL, in microseconds"},
                   {"dbstat postgres -i 1", "of PostgreSQL, a report per second"},
                   {"dbstat -m 100 -S", "what took 100 ms or more, by kind of server"},
                   {"dbstat -C -u", "by kind of command, in microseconds"}},
      .questions = {{"How long do queries of a database take?", "dbstat -u"},
                    {"Is the database slow, or the network to it?", "dbstat -i 1"}},
      .differs = {{Difference::bcc,
                   "Servers are found without -p, and prepared statements count. There servers "
                   "without USDT probes, such as MySQL 8 and MariaDB, cannot be traced."},
                  {Difference::bcc, "The time of a report is without brackets."}},
      .object = skeleton<dbstat_bpf>(),
      .positionals = {database_argument()},
      .options =
          {number('m', "threshold", "MS", "only queries that took at least MS milliseconds",
                  setting(&Opt::min_ns), kMillisecond),
           shared::microseconds(),
           flag('S', "servers", "one histogram per kind of server", setting(&Opt::by_server)),
           flag('C', "commands", "one histogram per kind of command", setting(&Opt::by_command)),
           flag('e', "extension", "print average, total and count below each histogram"),
           database_option(), shared::library('x', "exe"), shared::return_trampoline(),
           flag(0, "all-commands",
                "all commands of MariaDB and MySQL clients, such as ping and quit",
                setting(&Opt::all_commands)),
           shared::interval(), shared::duration('d'), shared::timestamp(), shared::pid(),
           shared::tid(0), shared::uid(0), shared::comm(), shared::cgroup(), shared::max_keys()},
      .hooks = {database_hook(false)},
      .report = histogram<Key>(
                    maps::queries, "query latency",
                    {named<&Key::server, kDatabases>("database", "database", as::text,
                                                     "mysql (MariaDB, too) or postgres")
                         .with("servers"),
                     derived<Key, command>("command", "command", as::text,
                                           "what the client requested: query, prepare, execute; "
                                           "parse: a PostgreSQL query that was not run")
                         .bounded()
                         .with("commands")},
                    "extension")
                    .in_milliseconds()
                    .always_timed(),
      .announce = "Tracing database queries",
      .look_up = look_up_databases<Opt, false>,
  };
}
