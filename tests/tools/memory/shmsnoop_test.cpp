// shmsnoop against a program that makes known calls, and the ids and addresses that it got.
#include <fmt/format.h>
#include <unistd.h>

#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Shmsnoop, EveryCallWithItsArguments) {
  require_tool("shmsnoop");
  Workload workload("segments", {"--shm", "30"}), other("segments", {"--shm", "2"});
  Tracer own("shmsnoop", {"--json", "--strict", "-p", workload.id()});
  Tracer nobody("shmsnoop", {"--json", "--strict", "-u", "54321"});
  Tracer named("shmsnoop", {"--json", "--strict", "-n", "egment"});
  other.release();
  other.truth();
  workload.release();
  auto truth = workload.truth();
  auto report = own.stop();
  ASSERT_EQ(report.body.size(), truth["shm_calls"].u64());
  EXPECT_TRUE(nobody.stop().body.empty());
  EXPECT_EQ(named.stop().body.size(), report.body.size() + 12);

  const std::vector<Json> last(report.body.end() - 6, report.body.end());
  const char* calls[] = {"SHMGET", "SHMAT", "SHMCTL", "SHMDT", "SHMCTL", "SHMDT"};
  for (std::size_t i = 0; i < last.size(); i++) {
    EXPECT_EQ(last[i]["call"].str(), calls[i]);
    EXPECT_EQ(last[i]["pid"].i64(), workload.pid());
    EXPECT_EQ(last[i]["comm"].str(), "segments");
    EXPECT_EQ(last[i]["error"].is_null(), i < 5);
    if (i != 3 && i != 5) {
      EXPECT_EQ(last[i]["shmid"].u64(), truth["shmid"].u64());
    }
  }
  auto id = truth["shmid"].u64(), at = truth["address"].u64();
  auto bytes = 2 * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(last[0]["size_bytes"].u64(), bytes);
  EXPECT_EQ(last[0]["arguments_text"].str(),
            fmt::format("key: 0x0, size: {}, shmflg: 0x3a0 (IPC_CREAT|0640)", bytes));
  EXPECT_EQ(last[1]["address"].u64(), at);
  EXPECT_EQ(last[1]["arguments_text"].str(),
            fmt::format("shmid: {:#x}, shmaddr: 0x0, shmflg: 0x1000 (SHM_RDONLY)", id));
  EXPECT_TRUE(last[2]["arguments_text"].str().starts_with(
      fmt::format("shmid: {:#x}, cmd: 2 (IPC_STAT), buf: 0x", id)));
  EXPECT_EQ(last[3]["address"].u64(), at);
  EXPECT_EQ(last[3]["arguments_text"].str(), fmt::format("shmaddr: {:#x}", at));
  EXPECT_EQ(last[4]["arguments_text"].str(),
            fmt::format("shmid: {:#x}, cmd: 0 (IPC_RMID), buf: 0x0", id));
  EXPECT_EQ(last[5]["error"].str(), "EINVAL");
}

TOOL_TEST(Shmsnoop, ColumnsOfThePeer) {
  require_tool("shmsnoop");
  EXPECT_EQ(header_of("shmsnoop", {}), (Strings{"PID", "COMM", "SYS", "RET", "ARGs"}));
  EXPECT_EQ(header_of("shmsnoop", {"-T"}),
            (Strings{"TIME(s)", "PID", "COMM", "SYS", "RET", "ARGs"}));
  Workload workload("segments", {"--shm", "1"});
  EXPECT_EQ(header_of("shmsnoop", {"-t", workload.id()}),
            (Strings{"TID", "COMM", "SYS", "RET", "ARGs"}));
  Tracer tracer("shmsnoop", {"-t", workload.id()});
  workload.release();
  auto truth = workload.truth();
  std::istringstream lines(tracer.stop_text());
  std::string line;
  std::getline(lines, line);
  for (auto [call, ret] : {std::pair{"SHMGET", fmt::format("{:x}", truth["shmid"].u64())},
                           {"SHMAT", fmt::format("{:x}", truth["address"].u64())},
                           {"SHMCTL", std::string("0")},
                           {"SHMDT", std::string("0")},
                           {"SHMCTL", std::string("0")},
                           {"SHMDT", std::string("-EINVAL")}}) {
    ASSERT_TRUE(std::getline(lines, line));
    auto cells = words(line);
    ASSERT_GE(cells.size(), 6u) << line;
    EXPECT_EQ((Strings{cells[0], cells[1], cells[2], cells[3]}),
              (Strings{workload.id(), "segments", call, ret}));
  }
  EXPECT_FALSE(std::getline(lines, line)) << line;
}

const DeclareTests kShmsnoop{{
    .name = "shmsnoop",
    .events = {"-T", "segments --shm 3"},
    .stress = {.workload = "segments --shm {n/6}",
               .events = 1200,
               .truth = "shm_calls",
               .tiny = "--ring-size 4096"},
    .long_run = {{.arguments = "-T"}},
}};

}  // namespace
}  // namespace coretap::tooltest
