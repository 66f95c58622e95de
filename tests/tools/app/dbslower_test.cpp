// dbslower and dbstat against real servers and their logs, and against a program that counts its
// calls.
#include "servers.hpp"

namespace coretap::tooltest {
namespace {

std::vector<Json> with_text(const Report& report, const std::string& text) {
  return lines_with(report.body, {{"query", text}});
}
std::size_t count_of(const std::vector<Json>& queries, const char* command,
                     std::uint64_t least_ns = 0) {
  auto all = lines_with(queries, {{"command", command}});
  return std::ranges::count_if(all, [&](auto& q) { return q["latency_ns"].u64() >= least_ns; });
}

void expect_as_logged(const DatabaseServer& server, const Json& event, const std::string& text) {
  auto logged = server.logged_seconds(text);
  EXPECT_GE(event["latency_ns"].real(), logged * 1e9 * 0.95);
  EXPECT_GE(logged, 0.03);
}

/// With these options and those that select the program.
Strings of_served(const char* options) {
  return options + Strings{"--json", "-p", "{pid}", "-x", workload_path("served")};
}

TOOL_TEST(Dbslower, EveryQueryOfAProgramThatCounts) {
  auto seen = observe_with(
      {of_served("dbslower -m 0"), of_served("dbslower -m 0 --text-size 6 --all-commands")},
      "served --count 3");
  auto report = seen.report(0), cut = seen.report(1);
  EXPECT_EQ(report.body.size(), seen.truth["queries"].u64());
  // The last one is truncated, and the ledger counts it.
  for (auto& text :
       {std::string("select '\x1b[31m', '\n', '\xef\xbf\xbd'"), std::string("select ?"),
        std::string("select 'executed'"), std::string(20000, 'q'), std::string(32000, 'b')})
    EXPECT_EQ(with_text(report, text).size(), 3u) << text;
  EXPECT_EQ(report.lost("truncated"), 3u);
  expect_all(report);
  EXPECT_EQ(cut.body.size(), seen.truth["queries"].u64() + 3) << "ping, too";
  EXPECT_EQ(with_text(cut, "qqqqqq").size(), 3u);
}

TOOL_TEST(Dbslower, PartsOfPostgresAreOneQuery) {
  auto seen = observe_with(
      {of_served("dbslower -m 0"), of_served("dbslower -m 10"), of_served("dbstat -C")},
      "served --kind postgres --ms 20 --count 2");
  auto report = seen.report(0);
  auto queries = seen.truth["queries"].u64(), parses = seen.truth["parses"].u64();
  EXPECT_EQ(report.body.size(), queries);
  for (auto& event : report.body) expect_fields(event, {{"database", "postgres"}});
  EXPECT_EQ(count_of(report.body, "query", 20'000'000), count_of(report.body, "query"));
  EXPECT_EQ(count_of(report.body, "parse"), parses);
  for (auto* text : {"select 'simple'", "select $1", "select 'next'", "select 1/g", "selekt"})
    EXPECT_EQ(with_text(report, text).size(), 2u) << text;
  EXPECT_EQ(seen.report(1).body.size(), queries - parses);
  EXPECT_EQ(seen.report(2).sum("count"), queries);
}

TOOL_TEST(Dbslower, RealPostgres) {
  Postgres server;
  const std::string sleeps = "select pg_sleep(0.03)";
  const auto longest = "select '" + std::string(9000, 'x') + "'";
  Tracer tracer("dbslower", "--json postgres -m 0 --comm postgres");
  Tracer slow("dbslower", "--json postgres -m 20 --comm postgres");
  Tracer counts("dbstat", "--json postgres -m 20 --comm postgres");
  EXPECT_EQ(server.sql(sleeps).status, 0);
  EXPECT_EQ(server.sql(longest).status, 0);
  EXPECT_NE(server.sql("selekt").status, 0);
  const std::string fails = "select 1 / (g - 2) from generate_series(1, 3) g";
  EXPECT_NE(server.sql(fails).status, 0);
  auto prepared = server.prepared("select pg_sleep(0.025)", 2);
  EXPECT_EQ(prepared.status, 0) << prepared.err;
  auto report = tracer.stop();
  EXPECT_EQ(with_text(report, longest).size(), 1u);
  expect_fields(line_with(report.body, {{"query", "selekt"}}), {{"command", "parse"}});
  expect_fields(line_with(report.body, {{"query", fails}}), {{"command", "query"}});
  expect_as_logged(server, line_with(report.body, {{"query", sleeps}}), sleeps);
  std::size_t executed = 0;
  for (auto& event : with_text(report, "select pg_sleep(0.025);"))
    executed += event["latency_ns"].u64() >= 25'000'000;
  EXPECT_EQ(executed, 2u);
  expect_all(report);
  auto slow_ones = slow.stop().body.size();
  EXPECT_GE(slow_ones, 3u);
  EXPECT_EQ(counts.stop().sum("count"), slow_ones);
}

TOOL_TEST(Dbslower, RealMariadb) {
  Mariadb server;
  const std::string sleeps = "select sleep(0.03)", executes = "select sleep(0.025)";
  const auto longest = "select '" + std::string(9000, 'x') + "'";
  Tracer tracer("dbslower", "--json mysql -m 0 -p " + server.id());
  Tracer peers("coretap", "mysqld_qslower --json " + server.id() + " 20");
  Tracer counts("dbstat", "--json mysql -m 20 -p " + server.id());
  EXPECT_EQ(server.sql(sleeps).status, 0);
  EXPECT_EQ(server.sql(longest).status, 0);
  auto prepared = server.prepared(executes, 2);
  EXPECT_EQ(prepared.status, 0) << prepared.err;
  auto report = tracer.stop();
  EXPECT_EQ(with_text(report, longest).size(), 1u);
  auto own = with_text(report, executes);
  EXPECT_EQ(count_of(own, "prepare"), 1u);
  EXPECT_EQ(count_of(own, "execute"), 2u);
  EXPECT_EQ(count_of(own, "execute", 25'000'000), 2u);
  expect_as_logged(server, line_with(report.body, {{"query", sleeps}}), sleeps);
  expect_all(report);
  auto slow_ones = peers.stop().body.size();
  EXPECT_GE(slow_ones, 3u);
  EXPECT_EQ(counts.stop().sum("count"), slow_ones);
}

/// The same query three times, logged by the server.
void run_thrice(const DatabaseServer& server, const std::string& text) {
  ASSERT_NE(::access(server.path("root/opt").c_str(), F_OK), 0) << "its program has a name here";
  for (int i = 0; i < 3; i++) EXPECT_EQ(server.sql(text).status, 0);
}
void expect_thrice(const DatabaseServer& server, const std::vector<Json>& events,
                   const std::string& text) {
  ASSERT_EQ(events.size(), 3u);
  expect_as_logged(server, events[0], text);
}

// The server's program is in no directory of this system.
TOOL_TEST(Dbslower, MariadbInAContainer) {
  Mariadb server(Where::in_a_container);
  const std::string sleeps = "select sleep(0.03)";
  Tracer by_pid("dbslower", "--json -m 0 -p " + server.id());
  Tracer by_name("dbslower", "--json mysql -m 0");
  Tracer counts("dbstat", "--json mysql -m 20 -p " + server.id());
  run_thrice(server, sleeps);
  expect_thrice(server, with_text(by_pid.stop(), sleeps), sleeps);
  auto pid = std::stoul(server.id());
  expect_thrice(server, lines_with(by_name.stop().body, {{"query", sleeps}, {"pid", pid}}), sleeps);
  EXPECT_EQ(counts.stop().sum("count"), 3u);
}

// Its backends are separate processes that map the program as well.
TOOL_TEST(Dbslower, PostgresInAContainer) {
  Postgres server(Where::in_a_container);
  const std::string sleeps = "select pg_sleep(0.03)";
  Tracer by_name("dbslower", "--json postgres -m 0 --comm postgres");
  Tracer counts("dbstat", "--json postgres -m 20 --comm postgres");
  run_thrice(server, sleeps);
  expect_thrice(server, with_text(by_name.stop(), sleeps), sleeps);
  EXPECT_GE(counts.stop().sum("count"), 3u);
}

TESTS_OF(dbslower,
         .events = {{"-e", "-m", "0", "-x", workload_path("served")}, {"served", "--count", "2"}},
         .stress = event_row("served --count {n/5+1}", 500, "queries",
                             {"-m", "0", "-x", workload_path("served")})
                       .with_copies(6),
         .long_run = {{.arguments = {"-x", workload_path("served")}}});

}  // namespace
}  // namespace coretap::tooltest
