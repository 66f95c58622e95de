// fsrwstat against a thread that uses file systems of known types a known number of times.
#include <fcntl.h>
#include <sys/mman.h>

#include <map>

#include "../harness.hpp"
#include "io_thread.hpp"

namespace coretap::tooltest {
namespace {

/// Of what the workload says, and waits for.
constexpr std::uint64_t kFew = 10;

void use_each() {
  static char buffer[102400];
  int pipes[2];
  int file = memfd_create("coretap-fsrwstat", MFD_CLOEXEC);
  int proc = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  ssize_t sum = pipe2(pipes, O_CLOEXEC);
  for (int i = 0; i < 40; i++) sum += pwrite(file, buffer, sizeof buffer, 0);
  for (int i = 0; i < 20; i++) sum += pread(file, buffer, sizeof buffer, 0);
  sum += write(pipes[1], buffer, 10) + read(pipes[0], buffer, 100);
  for (int i = 0; i < 3; i++) sum += pread(proc, buffer, 4, 0);
  EXPECT_EQ(sum, 60 * static_cast<ssize_t>(sizeof buffer) + 32);
  for (int fd : {file, proc, pipes[0], pipes[1]}) close(fd);
}

TOOL_TEST(Fsrwstat, EachTypeOfFileSystem) {
  require_tool("fsrwstat");
  IoThread thread(use_each);
  Tracer tracer("fsrwstat", {"--json", "--strict", "-t", thread.id(), "3600"});
  thread.finish();
  auto report = tracer.stop();
  std::map<std::string, std::vector<std::uint64_t>> seen;
  for (auto& line : report.body)
    seen[line["fs_type"].str()] = {line["reads"].u64(), line["writes"].u64(),
                                   line["read_bytes"].u64(), line["write_bytes"].u64()};
  std::map<std::string, std::vector<std::uint64_t>> truth = {
      {"tmpfs", {20, 40, 20 * 102400, 40 * 102400}},
      {"pipefs", {1, 1, 10, 10}},
      {"proc", {3, 0, 12, 0}}};
  EXPECT_EQ(seen, truth);
}

TOOL_TEST(Fsrwstat, TextHasRates) {
  require_tool("fsrwstat");
  IoThread thread(use_each);
  Tracer tracer("fsrwstat", {"-t", thread.id(), "-r", "1", "3600"});
  thread.finish();
  auto text = tracer.stop_text();
  auto at = text.find("FS ");
  ASSERT_NE(at, text.npos) << text;
  EXPECT_EQ(words(text.substr(at)), (Strings{"FS", "READ/s", "WRITE/s", "R_KB/s", "W_KB/s"}));
  auto row = words(text.substr(text.find('\n', at) + 1));
  ASSERT_EQ(row.size(), 5u) << text;
  EXPECT_EQ(row[0], "tmpfs");
  // All in one time: rates are as the numbers are to each other.
  EXPECT_GT(std::stod(row[2]), 0) << text;
  EXPECT_NEAR(std::stod(row[2]), 2 * std::stod(row[1]), 2) << text;
  EXPECT_NEAR(std::stod(row[4]), 2 * std::stod(row[3]), 2) << text;
  EXPECT_NEAR(std::stod(row[4]), 100 * std::stod(row[2]), 100) << text;
}

const DeclareTests kFsrwstat{{
    .name = "fsrwstat",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "fileio --count 5"},
    .stress = {.workload = "fileio --count {n}",
               .events = 20000,
               .shown = "reads+writes",
               .truth = "calls",
               .tiny = "--max-keys 1",
               .slack = kFew},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
