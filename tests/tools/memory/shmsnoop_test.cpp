// shmsnoop against a program that makes known calls, and the ids and addresses that they returned.
#include <fmt/format.h>

#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Shmsnoop, EveryCallWithItsArguments) {
  auto [seen, other] =
      observe_beside("segments --shm 2",
                     {"shmsnoop --json --strict -p {pid}", "shmsnoop --json --strict -u 54321",
                      "shmsnoop --json --strict -n egment"},
                     "segments --shm 30", {});
  auto all = seen.report(0).body;
  ASSERT_EQ(all.size(), seen.truth["shm_calls"].u64());
  EXPECT_TRUE(seen.report(1).body.empty());
  EXPECT_EQ(seen.report(2).body.size(), all.size() + 12);

  auto id = seen.truth["shmid"].u64(), at = seen.truth["address"].u64();
  auto bytes = 2 * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::pair<const char*, std::string> calls[] = {
      {"SHMGET", fmt::format("key: 0x0, size: {}, shmflg: 0x3a0 (IPC_CREAT|0640)", bytes)},
      {"SHMAT", fmt::format("shmid: {:#x}, shmaddr: 0x0, shmflg: 0x1000 (SHM_RDONLY)", id)},
      {"SHMCTL", fmt::format("shmid: {:#x}, cmd: 2 (IPC_STAT), buf: 0x", id)},
      {"SHMDT", fmt::format("shmaddr: {:#x}", at)},
      {"SHMCTL", fmt::format("shmid: {:#x}, cmd: 0 (IPC_RMID), buf: 0x0", id)},
      {"SHMDT", ""}};
  const std::vector<Json> last(all.end() - 6, all.end());
  for (std::size_t i = 0; i < last.size(); i++) {
    SCOPED_TRACE(i);
    auto& [call, arguments] = calls[i];
    expect_fields(last[i], {is("call", call), is("pid", seen.pid), is("comm", "segments"),
                            is("error", i < 5 ? Value(nullptr) : Value("EINVAL"))});
    auto text = last[i]["arguments_text"].str();
    EXPECT_EQ(i == 2 ? text.substr(0, arguments.size()) : i == 5 ? "" : text, arguments);
    if (std::string_view(call) != "SHMDT") expect_fields(last[i], {{"shmid", id}});
  }
  expect_fields(last[0], {{"size_bytes", bytes}});
  for (std::size_t i : {1, 3}) expect_fields(last[i], {{"address", at}});
}

TESTS_OF(shmsnoop, .events = {"-T", "segments --shm 3"},
         .stress = event_row("segments --shm {n/6}", 1200, "shm_calls"),
         .long_run = {{.arguments = "-T"}});

}  // namespace coretap::tooltest
