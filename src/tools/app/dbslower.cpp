// dbslower: slow database queries.
#include "app/dbslower.h"

#include "coretap/databases.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "dbslower.skel.h"

using namespace coretap;
using Event = dbslower_event;
using Opt = rodata_of<dbslower_bpf>;

namespace {

std::string command(const Event& e) { return database_command(e.command); }
Value query(const Event& e) { return value_if(e.named, std::string(text_of(e, e.text))); }
Value cut(const Event& e) { return e.cut != 0; }

Option most_text() {
  return number(0, "text-size", "BYTES",
                "bytes of each query's text, at most 32000 (default: 32000)", Range{1, QUERY_MOST},
                setting(&Opt::text_most));
}

}  // namespace

TOOL(dbslower) {
  static const std::string kDescription =
      "One line for each query of MariaDB, MySQL or PostgreSQL that takes at least --threshold, "
      "when it is done: the process or thread of the server that ran it, its time and its text.\n\n" +
      std::string(kDatabaseWords) +
      "\n\n"
      "Texts have up to 32000 bytes; longer ones are cut and counted. The text of a statement that "
      "is executed by its number is shown for PostgreSQL, and for MariaDB by its query cache's "
      "function. Parameters are shown only where the server puts them into the text.";
  return {
      .name = "dbslower",
      .summary = "slow queries of MariaDB, MySQL and PostgreSQL, with their texts",
      .description = kDescription,
      .overhead =
          "three breakpoints per query and a copy of its text: a few microseconds. Only database "
          "servers pay",
      .examples = {{"dbslower", "queries of 1 ms or more, of all servers"},
                   {"dbslower mysql -m 100", "of 100 ms or more, of MariaDB and MySQL"},
                   {"dbslower postgres -p 181", "of one backend of PostgreSQL"},
                   {"dbslower -m 0 --text-size 80", "all queries, the first 80 bytes of each"},
                   {"dbslower -x /opt/mysql/bin/mysqld", "of a server by its program"}},
      .questions = {{"Which queries of a database are slow?", "dbslower -m 100"},
                    {"Which queries does a MariaDB or PostgreSQL server run?", "dbslower -m 0"}},
      .other_names = {{"mysqld_qslower", "--database=mysql"}},
      .differs = {{Difference::bcc,
                   "Servers are found without -p and -x, and several are traced at the same time. "
                   "Prepared statements are shown, and times of PostgreSQL include the commit. "
                   "There only simple queries are shown."},
                  {Difference::bcc, "Texts have up to 32000 bytes. There they are cut at 256."}},
      .object = skeleton<dbslower_bpf>(),
      .positionals = {database_argument(), query_threshold(setting(&Opt::min_ns))},
      .options = {number('m', "threshold", "MS",
                         "only queries that took at least MS milliseconds (default: 1)",
                         setting(&Opt::min_ns), kMillisecond),
                  database_option(), shared::library('x', "exe"), shared::return_trampoline(),
                  most_text(),
                  flag(0, "all-commands",
                       "all commands of MariaDB and MySQL clients, such as ping and quit",
                       setting(&Opt::all_commands)),
                  shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup(),
                  shared::print_uid(), shared::extended()},
      .hooks = {database_hook(true)},
      .report =
          events<Event>(
              {who<&Event::who>(id::uid, id::pid, id::tid, id::comm.with("extended")),
               named<&Event::server, kDatabases>("database", "DATABASE", as::wide(as::text, -9),
                                                 "mysql (MariaDB, too) or postgres")
                   .with("extended"),
               field<&Event::latency_ns>("latency_ns", "MS", as::precise(as::milliseconds, 3),
                                         "time that the query took"),
               derived<Event, command>(
                   "command", "COMMAND", as::text,
                   "what the client requested: query, prepare, execute; parse: a PostgreSQL query "
                   "that was not run")
                   .bounded()
                   .with("extended"),
               derived<Event, cut>("query_cut", "", as::text, "whether the text is cut")
                   .with("json"),
               derived<Event, query>("query", "QUERY", as::rest, "its text; null: unknown"),
               who<&Event::who>(id::cgroup)})
              .timed_at_begin()
              .timed({{TimeColumn::since_start, "TIME(s)", 14, ""}})
              .high_rate(),  // long records
      .announce = "Tracing database queries",
      .look_up = look_up_databases<Opt, true>,
  };
}
