// filetype against a thread that reads and writes files of each type a known number of times.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <map>

#include "../harness.hpp"
#include "io_thread.hpp"

namespace coretap::tooltest {
namespace {

/// Of what the workload says, and waits for.
constexpr std::uint64_t kFew = 10;

struct Counts {
  std::uint64_t reads, writes, read_bytes, write_bytes;
};

const std::map<std::string, Counts> kTruth = {
    {"regular", {0, 3, 0, 300}},   {"fifo", {1, 2, 50, 50}}, {"socket", {4, 1, 40, 40}},
    {"character", {2, 1, 200, 7}}, {"none", {1, 5, 8, 40}},
};

void use_each() {
  char buffer[100] = {};
  int pipes[2], sockets[2];
  int file = memfd_create("coretap-filetype", MFD_CLOEXEC), event = eventfd(0, EFD_CLOEXEC);
  int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
  ssize_t sum = pipe2(pipes, O_CLOEXEC) + socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
  for (int i = 0; i < 3; i++) sum += write(file, buffer, 100);
  for (int i = 0; i < 2; i++) sum += write(pipes[1], buffer, 25);
  sum += read(pipes[0], buffer, 50);
  sum += write(sockets[0], buffer, 40);
  for (int i = 0; i < 4; i++) sum += read(sockets[1], buffer, 10);
  for (int i = 0; i < 2; i++) sum += read(zero, buffer, 100);
  sum += write(zero, buffer, 7);
  for (std::uint64_t i = 1; i <= 5; i++) sum += write(event, &i, sizeof i);
  sum += read(event, buffer, 8);
  EXPECT_EQ(read(-1, buffer, 1), -1);
  EXPECT_EQ(sum, 735);
  for (int fd : {file, event, zero, pipes[0], pipes[1], sockets[0], sockets[1]}) close(fd);
}

TOOL_TEST(Filetype, EachTypeOfFile) {
  require_tool("filetype");
  IoThread thread(use_each);
  Tracer tracer("filetype", {"--json", "--strict", "-t", thread.id()});
  thread.finish();
  auto report = tracer.stop();
  std::map<std::string, Counts> seen;
  for (auto& line : report.body) {
    EXPECT_EQ(line["pid"].u64(), static_cast<std::uint64_t>(getpid()));
    seen[line["type_of_file"].str()] = {line["reads"].u64(), line["writes"].u64(),
                                        line["read_bytes"].u64(), line["write_bytes"].u64()};
  }
  EXPECT_EQ(seen.size(), kTruth.size());
  for (auto& [type, truth] : kTruth) {
    EXPECT_EQ(seen[type].reads, truth.reads) << type;
    EXPECT_EQ(seen[type].writes, truth.writes) << type;
    EXPECT_EQ(seen[type].read_bytes, truth.read_bytes) << type;
    EXPECT_EQ(seen[type].write_bytes, truth.write_bytes) << type;
  }
}

TOOL_TEST(Filetype, RowsAreOrderedAndLimited) {
  require_tool("filetype");
  IoThread thread(use_each);
  Tracer tracer("filetype", {"-t", thread.id(), "-s", "writes", "-r", "2"});
  thread.finish();
  auto text = tracer.stop_text();
  EXPECT_TRUE(
      text.starts_with("PID     COMM             TYPE        READS WRITES    R_Kb    W_Kb\n"))
      << text;
  auto none = text.find(" none "), regular = text.find(" regular ");
  EXPECT_NE(none, text.npos) << text;
  EXPECT_NE(regular, text.npos) << text;
  EXPECT_LT(none, regular) << text;
  EXPECT_EQ(text.find(" fifo "), text.npos) << text;
}

const DeclareTests kFiletype{{
    .name = "filetype",
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
