// tcpcong against connections that are known to wait for a timeout, which is the state loss.
#include <algorithm>
#include <sstream>

#include "connections.hpp"

namespace coretap::tooltest {
namespace {

constexpr const char* kTimes[] = {"open_ns", "disorder_ns", "cwr_ns", "recovery_ns", "loss_ns"};

std::uint64_t in_all(const Json& row) {
  std::uint64_t sum = 0;
  for (auto* key : kTimes) sum += row[key].u64();
  return sum;
}
/// Those of the client's end.
std::vector<Json> of_client(const Connections& workload, const Report& report) {
  auto rows = workload.own(report);
  std::erase_if(rows, [&](auto& r) { return r["remote_port"].u64() != workload.server_port; });
  return rows;
}

void expect_loss(const Strings& options, const std::string& address, std::uint64_t ip) {
  require_tool("tcpcong");
  Connections workload(options);
  Tracer tracer("tcpcong", {"--json", "--strict", "--netns", workload.id()});
  Tracer own("tcpcong", {"--json", "-p", workload.id()});
  Tracer none("tcpcong", {"--json", "-R", "1"});
  workload.release();
  auto truth = workload.truth();
  auto rows = of_client(workload, tracer.stop()), of_task = of_client(workload, own.stop());
  ASSERT_EQ(rows.size(), 1u);
  auto& row = rows[0];
  EXPECT_EQ(row["ip"].u64(), ip);
  EXPECT_EQ(row["local_address"].str(), address);
  EXPECT_EQ(row["remote_address"].str(), address);
  EXPECT_EQ(row["local_port"].u64(), truth["client_ports"].items()[0].u64());
  EXPECT_GE(row["changes"].u64(), 2u);
  // From the timeout on, which is before the last repetition that is lost is counted, until it is
  // acknowledged, which is before the answer comes.
  EXPECT_GE(row["loss_ns"].u64(), truth["hole_ns"].u64() * 9 / 10);
  EXPECT_LE(in_all(row), truth["session_ns"].u64());
  EXPECT_GE(in_all(row), truth["session_ns"].u64() * 9 / 10);
  EXPECT_GT(row["open_ns"].u64(), 0u);
  ASSERT_EQ(of_task.size(), 1u);
  EXPECT_EQ(of_task[0]["changes"].u64(), row["changes"].u64());
  EXPECT_EQ(workload.own(none.stop()).size(), 0u);
}

TOOL_TEST(Tcpcong, Loss) { expect_loss({"--sessions", "1", "--lost", "3"}, "127.0.0.1", 4); }
TOOL_TEST(Tcpcong, LossIpv6) {
  expect_loss({"--sessions", "1", "--lost", "2", "--family", "6"}, "::1", 6);
}

// A state that lasts over the end of an interval counts in both, and in all as much as it lasts.
TOOL_TEST(Tcpcong, StatesUnderWay) {
  require_tool("tcpcong");
  Connections workload({"--sessions", "1", "--lost", "4"});
  Tracer whole("tcpcong", {"--json", "--strict", "--netns", workload.id()});
  Tracer tracer("tcpcong", {"--json", "--strict", "--netns", workload.id(), "0.1"});
  workload.release();
  workload.truth();
  auto at_once = of_client(workload, whole.stop()), parts = of_client(workload, tracer.stop());
  ASSERT_EQ(at_once.size(), 1u);
  EXPECT_TRUE(std::any_of(parts.begin(), parts.end(), [](auto& row) {
    return row["changes"].u64() == 0 && row["loss_ns"].u64() > 0;
  }));
  std::uint64_t all = 0, lost = 0, changes = 0;
  for (auto& row : parts) {
    all += in_all(row);
    lost += row["loss_ns"].u64();
    changes += row["changes"].u64();
  }
  EXPECT_EQ(changes, at_once[0]["changes"].u64());
  auto near = [](std::uint64_t a, std::uint64_t b) { EXPECT_NEAR(a, b, 1e6 + 0.01 * b); };
  near(all, in_all(at_once[0]));
  near(lost, at_once[0]["loss_ns"].u64());
}

TOOL_TEST(Tcpcong, Distributions) {
  require_tool("tcpcong");
  Connections workload({"--sessions", "1", "--lost", "3"});
  Tracer tracer("tcpcong", {"--json", "-d", "--netns", workload.id(), "-R",
                            std::to_string(workload.server_port)});
  Tracer text("tcpcong", {"-d", "-u", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  std::uint64_t all = 0, losses = 0;
  for (auto& h : report.body) {
    all += h["total_ns"].u64();
    if (h["congestion_state"].str() != "loss") continue;
    losses += h["count"].u64();
    EXPECT_GE(h["total_ns"].u64(), truth["hole_ns"].u64() * 9 / 10);
  }
  EXPECT_EQ(losses, 1u);
  EXPECT_LE(all, truth["session_ns"].u64());
  auto shown = text.stop_text();
  EXPECT_TRUE(contains(shown, "state = loss")) << shown;
  EXPECT_TRUE(contains(shown, "usecs")) << shown;
}

TOOL_TEST(Tcpcong, Text) {
  require_tool("tcpcong");
  Connections workload({"--sessions", "1", "--lost", "2"});
  Tracer tracer("tcpcong", {"-p", workload.id()}), fine("tcpcong", {"-u", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  std::istringstream text(tracer.stop_text()), in_us(fine.stop_text());
  std::string line;
  auto titles = [&](std::istream& from) {
    while (std::getline(from, line) && line.empty()) {
    }
    return words(line);
  };
  EXPECT_EQ(titles(text), (Strings{"LAddrPort", "RAddrPort", "Open_ms", "Dod_ms", "Rcov_ms",
                                   "Cwr_ms", "Los_ms", "Chgs"}));
  ASSERT_TRUE(std::getline(text, line));
  auto cells = words(line);
  ASSERT_EQ(cells.size(), 8u) << line;
  EXPECT_EQ(cells[0], "127.0.0.1:" + std::to_string(truth["client_ports"].items()[0].u64()));
  EXPECT_EQ(cells[1], "127.0.0.1:" + std::to_string(workload.server_port));
  auto loss_ms = std::stod(cells[6]);
  EXPECT_EQ(titles(in_us), (Strings{"LAddrPort", "RAddrPort", "Open_us", "Dod_us", "Rcov_us",
                                    "Cwr_us", "Los_us", "Chgs"}));
  ASSERT_TRUE(std::getline(in_us, line));
  cells = words(line);
  ASSERT_EQ(cells.size(), 8u) << line;
  EXPECT_NEAR(std::stod(cells[6]) / 1000, loss_ms, 1 + loss_ms / 100);
}

const DeclareTests kTcpcong{{
    .name = "tcpcong",
    .reports = {{ReportKind::aggregate}, {ReportKind::aggregate, {"-d"}}},
    .events = {"-w", "tcp --sessions 1 --lost 2"},
    .nothing_when_idle = true,
    .stress = {.workload = "tcp --sessions {n} --lost 1 --client-bytes 10 --server-bytes 10",
               .events = 4,
               .shown = "changes",
               // To the loss, and back.
               .truth = [](stress::Load& load) -> std::uint64_t {
                 return 2 * load.workload().truth()["client_ports"].items().size();
               },
               .tiny = "--max-keys 1"},
}};

}  // namespace
}  // namespace coretap::tooltest
