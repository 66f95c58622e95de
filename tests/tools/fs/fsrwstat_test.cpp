// fsrwstat against a thread that uses file systems of known types a known number of times.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

void use_each_file_system() {
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
  std::map<std::string, std::vector<std::uint64_t>> seen,
      truth = {{"tmpfs", {20, 40, 20 * 102400, 40 * 102400}},
               {"pipefs", {1, 1, 10, 10}},
               {"proc", {3, 0, 12, 0}}};
  auto report = observe_thread("fsrwstat --json --strict 3600", use_each_file_system).report();
  for (auto& line : report.body)
    for (auto* key : {"reads", "writes", "read_bytes", "write_bytes"})
      seen[line["fs_type"].str()].push_back(line[key].u64());
  EXPECT_EQ(seen, truth);
}

TOOL_TEST(Fsrwstat, TextHasRates) {
  auto text = observe_thread("fsrwstat -r 1 3600", use_each_file_system).text();
  auto rows = lines(text.substr(text.find("FS ")));
  auto row = words(rows.at(1));
  ASSERT_EQ(row.size(), 5u) << text;
  EXPECT_EQ(row[0], "tmpfs");
  // All cover the same time: rates have the ratios of the counts.
  auto rate = [&](std::size_t column) { return std::stod(row[column]); };
  EXPECT_GT(rate(2), 0) << text;
  EXPECT_NEAR(rate(2), 2 * rate(1), 2) << text;
  EXPECT_NEAR(rate(4), 2 * rate(3), 2) << text;
  EXPECT_NEAR(rate(4), 100 * rate(2), 100) << text;
}

const DeclareTests kFsrwstat{of_reads_and_writes("fsrwstat", kFewCalls)};

}  // namespace
}  // namespace coretap::tooltest
