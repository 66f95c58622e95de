// dbslower and dbstat against real servers and what these log themselves, and against a program
// that counts what it calls.
#include <map>

#include "../harness.hpp"
#include "servers.hpp"

namespace coretap::tooltest {
namespace {

std::vector<Json> with_text(const Report& report, const std::string& text) {
  std::vector<Json> found;
  for (auto& event : report.body)
    if (event["query"].is_null() ? text.empty() : event["query"].str() == text)
      found.push_back(event);
  return found;
}

/// Of this process alone.
std::vector<Json> of_process(std::vector<Json> events, const std::string& pid) {
  std::erase_if(events, [&](auto& event) { return std::to_string(event["pid"].u64()) != pid; });
  return events;
}

/// The server's own log has about the same time: its clock starts a moment earlier.
void expect_as_logged(const Mariadb& server, const Json& event, const std::string& text) {
  auto log = server.slow_log();
  auto at = log.find("\n" + text);
  ASSERT_NE(at, log.npos) << log;
  constexpr std::string_view kTime = "Query_time: ";
  auto logged_s = std::stod(log.substr(log.rfind(kTime, at) + kTime.size()));
  EXPECT_GE(static_cast<double>(event["latency_ns"].u64()), logged_s * 1e9 * 0.95);
  EXPECT_GE(logged_s, 0.03);
}
void expect_as_logged(const Postgres& server, const Json& event, const std::string& text) {
  auto said = server.said();
  auto at = said.find("ms  statement: " + text);
  ASSERT_NE(at, said.npos) << said;
  auto logged_ms = std::stod(said.substr(said.rfind(':', at) + 1));
  EXPECT_GE(static_cast<double>(event["latency_ns"].u64()), logged_ms * 1e6 * 0.95);
  EXPECT_GE(logged_ms, 30.0);
}

std::uint64_t all_counts(const Report& report) {
  std::uint64_t all = 0;
  for (auto& line : report.body) all += line["count"].u64();
  return all;
}

TOOL_TEST(Dbslower, EveryQueryOfAProgramThatCounts) {
  Workload workload("served", {"--count", "3"});
  auto path = workload_path("served");
  Tracer tracer("dbslower", {"--json", "-m", "0", "-p", workload.id(), "-x", path});
  Tracer cut("dbslower", {"--json", "-m", "0", "-p", workload.id(), "-x", path, "--text-size", "6",
                          "--all-commands"});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  EXPECT_EQ(report.body.size(), truth["queries"].u64());
  EXPECT_EQ(with_text(report, "select '\x1b[31m', '\n', '\xef\xbf\xbd'").size(), 3u);
  EXPECT_EQ(with_text(report, "select ?").size(), 3u);
  EXPECT_EQ(with_text(report, "select 'executed'").size(), 3u);
  EXPECT_EQ(with_text(report, std::string(20000, 'q')).size(), 3u);
  EXPECT_EQ(with_text(report, std::string(32000, 'b')).size(), 3u) << "cut, and the ledger tells";
  EXPECT_EQ(report.lost("truncated"), 3u);
  EXPECT_EQ(report.lost("lost") + report.lost("unmatched") + report.lost("untracked"), 0u);
  auto short_ones = cut.stop();
  EXPECT_EQ(short_ones.body.size(), truth["queries"].u64() + 3) << "ping, too";
  EXPECT_EQ(with_text(short_ones, "qqqqqq").size(), 3u);
}

TOOL_TEST(Dbslower, PartsOfPostgresAreOneQuery) {
  Workload workload("served", {"--kind", "postgres", "--ms", "20", "--count", "2"});
  auto path = workload_path("served");
  Tracer tracer("dbslower", {"--json", "-m", "0", "-p", workload.id(), "-x", path});
  Tracer slow("dbslower", {"--json", "-m", "10", "-p", workload.id(), "-x", path});
  Tracer counts("dbstat", {"--json", "-C", "-p", workload.id(), "-x", path});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  EXPECT_EQ(report.body.size(), truth["queries"].u64());
  std::map<std::string, std::uint64_t> commands;
  for (auto& event : report.body) {
    commands[event["command"].str()]++;
    if (event["command"].str() == "query") {
      EXPECT_GE(event["latency_ns"].u64(), 20'000'000u);
    }
    EXPECT_EQ(event["database"].str(), "postgres");
  }
  EXPECT_EQ(commands["parse"], truth["parses"].u64());
  for (auto* text : {"select 'simple'", "select $1", "select 'next'", "selekt"})
    EXPECT_EQ(with_text(report, text).size(), 2u) << text;
  EXPECT_EQ(slow.stop().body.size(), truth["queries"].u64() - truth["parses"].u64());
  EXPECT_EQ(all_counts(counts.stop()), truth["queries"].u64());
}

TOOL_TEST(Dbslower, RealPostgres) {
  require_tool("dbslower");
  Postgres server;
  const std::string sleeps = "select pg_sleep(0.03)";
  const auto longest = "select '" + std::string(9000, 'x') + "'";
  Tracer tracer("dbslower", {"--json", "postgres", "-m", "0", "--comm", "postgres"});
  Tracer slow("dbslower", {"--json", "postgres", "-m", "20", "--comm", "postgres"});
  Tracer counts("dbstat", {"--json", "postgres", "-m", "20", "--comm", "postgres"});
  EXPECT_EQ(server.sql(sleeps).status, 0);
  EXPECT_EQ(server.sql(longest).status, 0);
  EXPECT_NE(server.sql("selekt").status, 0);
  auto prepared = server.prepared("select pg_sleep(0.025)", 2);
  EXPECT_EQ(prepared.status, 0) << prepared.err;
  auto report = tracer.stop();
  ASSERT_EQ(with_text(report, sleeps).size(), 1u);
  EXPECT_EQ(with_text(report, longest).size(), 1u);
  ASSERT_EQ(with_text(report, "selekt").size(), 1u);
  EXPECT_EQ(with_text(report, "selekt")[0]["command"].str(), "parse");
  expect_as_logged(server, with_text(report, sleeps)[0], sleeps);
  std::size_t executed = 0;
  for (auto& event : with_text(report, "select pg_sleep(0.025);"))
    executed += event["latency_ns"].u64() >= 25'000'000;
  EXPECT_EQ(executed, 2u);
  EXPECT_EQ(report.lost("lost") + report.lost("untracked") + report.lost("unmatched"), 0u);
  auto slow_ones = slow.stop().body.size();
  EXPECT_GE(slow_ones, 3u);
  EXPECT_EQ(all_counts(counts.stop()), slow_ones);
}

TOOL_TEST(Dbslower, RealMariadb) {
  require_tool("dbslower");
  Mariadb server;
  const std::string sleeps = "select sleep(0.03)", executes = "select sleep(0.025)";
  const auto longest = "select '" + std::string(9000, 'x') + "'";
  Tracer tracer("dbslower", {"--json", "mysql", "-m", "0", "-p", server.id()});
  Tracer peers("coretap", {"mysqld_qslower", "--json", server.id(), "20"});
  Tracer counts("dbstat", {"--json", "mysql", "-m", "20", "-p", server.id()});
  EXPECT_EQ(server.sql(sleeps).status, 0);
  EXPECT_EQ(server.sql(longest).status, 0);
  auto prepared = server.prepared(executes, 2);
  EXPECT_EQ(prepared.status, 0) << prepared.err;
  auto report = tracer.stop();
  ASSERT_EQ(with_text(report, sleeps).size(), 1u);
  EXPECT_EQ(with_text(report, longest).size(), 1u);
  std::map<std::string, std::size_t> commands;
  for (auto& event : with_text(report, executes)) {
    commands[event["command"].str()]++;
    if (event["command"].str() == "execute") {
      EXPECT_GE(event["latency_ns"].u64(), 25'000'000u);
    }
  }
  EXPECT_EQ(commands["prepare"], 1u);
  EXPECT_EQ(commands["execute"], 2u);
  expect_as_logged(server, with_text(report, sleeps)[0], sleeps);
  EXPECT_EQ(report.lost("lost") + report.lost("untracked") + report.lost("unmatched"), 0u);
  auto slow_ones = peers.stop().body.size();
  EXPECT_GE(slow_ones, 3u);
  EXPECT_EQ(all_counts(counts.stop()), slow_ones);
}

// What the server runs is in no directory of this system.
TOOL_TEST(Dbslower, MariadbInAContainer) {
  require_tool("dbslower");
  Mariadb server(Where::in_a_container);
  ASSERT_NE(::access(server.path("root/opt").c_str(), F_OK), 0) << "its program has a name here";
  const std::string sleeps = "select sleep(0.03)";
  Tracer by_pid("dbslower", {"--json", "-m", "0", "-p", server.id()});
  Tracer by_name("dbslower", {"--json", "mysql", "-m", "0"});
  Tracer counts("dbstat", {"--json", "mysql", "-m", "20", "-p", server.id()});
  for (int i = 0; i < 3; i++) EXPECT_EQ(server.sql(sleeps).status, 0);
  auto of_pid = with_text(by_pid.stop(), sleeps);
  auto of_name = of_process(with_text(by_name.stop(), sleeps), server.id());
  ASSERT_EQ(of_pid.size(), 3u);
  ASSERT_EQ(of_name.size(), 3u);
  expect_as_logged(server, of_pid[0], sleeps);
  expect_as_logged(server, of_name[0], sleeps);
  EXPECT_EQ(all_counts(counts.stop()), 3u);
}

// Its backends are processes of their own, which have mapped the program as well.
TOOL_TEST(Dbslower, PostgresInAContainer) {
  require_tool("dbslower");
  Postgres server(Where::in_a_container);
  ASSERT_NE(::access(server.path("root/opt").c_str(), F_OK), 0) << "its program has a name here";
  const std::string sleeps = "select pg_sleep(0.03)";
  Tracer by_name("dbslower", {"--json", "postgres", "-m", "0", "--comm", "postgres"});
  Tracer counts("dbstat", {"--json", "postgres", "-m", "20", "--comm", "postgres"});
  for (int i = 0; i < 3; i++) EXPECT_EQ(server.sql(sleeps).status, 0);
  auto events = with_text(by_name.stop(), sleeps);
  ASSERT_EQ(events.size(), 3u);
  expect_as_logged(server, events[0], sleeps);
  EXPECT_GE(all_counts(counts.stop()), 3u);
}

const DeclareTests kDbslower{{
    .name = "dbslower",
    .events = {{"-e", "-m", "0", "-x", workload_path("served")}, {"served", "--count", "2"}},
    .stress = {.workload = "served --count {n/5+1}",
               .events = 500,
               .options = {"-m", "0", "-x", workload_path("served")},
               .truth = "queries",
               .tiny = "--ring-size 4096",
               .copies = 6},
    .long_run = {{.arguments = {"-x", workload_path("served")}}},
}};

}  // namespace
}  // namespace coretap::tooltest
