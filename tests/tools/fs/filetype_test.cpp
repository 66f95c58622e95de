// filetype against a thread that reads and writes files of each type a known number of times.
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "shared.hpp"

namespace coretap::tooltest {
namespace {

void use_each_type() {
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
  auto rows = observe_thread("filetype --json --strict", use_each_type).report().body;
  const struct {
    const char* type;
    int reads, writes, read_bytes, write_bytes;
  } truth[] = {{"regular", 0, 3, 0, 300},
               {"fifo", 1, 2, 50, 50},
               {"socket", 4, 1, 40, 40},
               {"character", 2, 1, 200, 7},
               {"none", 1, 5, 8, 40}};
  EXPECT_EQ(rows.size(), std::size(truth));
  for (auto& [type, reads, writes, read_bytes, write_bytes] : truth)
    expect_fields(line_with(rows, {{"type_of_file", type}}),
                  {is("pid", getpid()), is("reads", reads), is("writes", writes),
                   is("read_bytes", read_bytes), is("write_bytes", write_bytes)});
}

TOOL_TEST(Filetype, RowsAreOrderedAndLimited) {
  auto text = observe_thread("filetype -s writes -r 2", use_each_type).text();
  EXPECT_TRUE(
      text.starts_with("PID     COMM             TYPE        READS WRITES    R_Kb    W_Kb\n"))
      << text;
  expect_contains(text, {" none ", " regular "});
  EXPECT_LT(text.find(" none "), text.find(" regular ")) << text;
  EXPECT_FALSE(contains(text, " fifo ")) << text;
}

const DeclareTests kFiletype{of_reads_and_writes("filetype", kFewCalls)};

}  // namespace
}  // namespace coretap::tooltest
