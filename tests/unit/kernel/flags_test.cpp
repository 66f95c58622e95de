#include "kernel/flags.hpp"

#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include "expect.hpp"

namespace coretap {
namespace {

std::string words(std::string_view call, std::size_t number,
                  const std::vector<std::uint64_t>& arguments) {
  return argument_words(call, number, arguments).value_or("(none)");
}

/// Of the only argument that matters.
std::string word(std::string_view call, std::size_t number, std::uint64_t value) {
  std::vector<std::uint64_t> arguments(6);
  arguments[number] = value;
  return words(call, number, arguments);
}

TEST(Flags, Open) {
  EXPECT_EQ(word("openat", 2, 0), "O_RDONLY");
  EXPECT_EQ(word("open", 1, O_WRONLY | O_CREAT | O_TRUNC), "O_WRONLY|O_CREAT|O_TRUNC");
  EXPECT_EQ(word("openat", 2, O_RDWR | O_SYNC), "O_RDWR|O_SYNC");
  EXPECT_EQ(word("openat", 2, O_RDWR | O_DSYNC), "O_RDWR|O_DSYNC");
  EXPECT_EQ(word("openat", 2, O_TMPFILE | O_RDWR), "O_RDWR|O_TMPFILE");
  EXPECT_EQ(word("openat", 2, O_NDELAY), "O_RDONLY|O_NONBLOCK");
  EXPECT_EQ(word("openat", 2, O_ACCMODE), "O_ACCMODE");
  EXPECT_EQ(word("openat", 2, 1U << 30), "O_RDONLY|0x40000000");
  EXPECT_EQ(word("openat", 2, ~std::uint64_t{0} << 32), "O_RDONLY") << "int: the lower half";
}

// Each flag alone has its own name, but for other names of the same.
TEST(Flags, OpenFlagsByThemselves) {
  std::set<std::uint64_t> seen;
  for (auto& flag : open_flag_words()) {
    if (!seen.insert(flag.mask() << 32 | flag.value).second) continue;
    auto access = flag.mask() == O_ACCMODE;
    EXPECT_EQ(flag_words(open_flag_words(), flag.value),
              (access ? "" : "O_RDONLY|") + std::string(flag.name));
  }
  EXPECT_GE(seen.size(), 20u);
}

TEST(Flags, Sockets) {
  std::vector<std::uint64_t> tcp{AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP};
  EXPECT_EQ(words("socket", 0, tcp), "AF_INET");
  EXPECT_EQ(words("socket", 1, tcp), "SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK");
  EXPECT_EQ(words("socket", 2, tcp), "IPPROTO_TCP");
  EXPECT_EQ(words("socket", 2, {AF_INET6, SOCK_RAW, IPPROTO_ICMPV6}), "IPPROTO_ICMPV6");
  EXPECT_EQ(words("socket", 2, {AF_NETLINK, SOCK_RAW, 16}), "NETLINK_GENERIC");
  EXPECT_EQ(words("socket", 2, {AF_UNIX, SOCK_STREAM, 0}), "(none)") << "a number";
  EXPECT_EQ(words("socket", 0, {200, 0, 0}), "0xc8");
  EXPECT_EQ(words("socket", 1, {0, 7 | SOCK_CLOEXEC, 0}), "SOCK_CLOEXEC|0x7");
  EXPECT_EQ(words("setsockopt", 2, {3, SOL_SOCKET, SO_REUSEADDR}), "SO_REUSEADDR");
  EXPECT_EQ(words("setsockopt", 2, {3, IPPROTO_TCP, 1}), "TCP_NODELAY");
  EXPECT_EQ(words("setsockopt", 2, {3, IPPROTO_UDP, 1}), "(none)");
  EXPECT_EQ(word("recvfrom", 3, MSG_DONTWAIT | MSG_PEEK), "MSG_PEEK|MSG_DONTWAIT");
}

TEST(Flags, Memory) {
  EXPECT_EQ(word("mmap", 2, PROT_READ | PROT_WRITE), "PROT_READ|PROT_WRITE");
  EXPECT_EQ(word("mmap", 3, MAP_PRIVATE | MAP_ANONYMOUS), "MAP_PRIVATE|MAP_ANONYMOUS");
  EXPECT_EQ(word("mmap2", 3, 3 | MAP_SYNC), "MAP_SHARED_VALIDATE|MAP_SYNC");
  EXPECT_EQ(word("mmap", 3, MAP_PRIVATE | 1ULL << 40), "MAP_PRIVATE|0x10000000000");
  EXPECT_EQ(word("mprotect", 2, PROT_NONE), "PROT_NONE");
  EXPECT_EQ(word("madvise", 2, MADV_DONTNEED), "MADV_DONTNEED");
  EXPECT_EQ(word("madvise", 2, 77), "0x4d");
  EXPECT_EQ(word("mremap", 3, MREMAP_MAYMOVE), "MREMAP_MAYMOVE");
}

TEST(Flags, Processes) {
  EXPECT_EQ(word("clone", 0, SIGCHLD), "SIGCHLD");
  EXPECT_EQ(word("clone", 0, CLONE_VM | CLONE_VFORK | SIGCHLD), "CLONE_VM|CLONE_VFORK|SIGCHLD");
  EXPECT_EQ(word("clone", 0, CLONE_VM | CLONE_THREAD), "CLONE_VM|CLONE_THREAD");
  EXPECT_EQ(word("clone", 0, 0), "0");
  EXPECT_EQ(word("unshare", 0, CLONE_NEWNET | CLONE_NEWNS), "CLONE_NEWNS|CLONE_NEWNET");
  EXPECT_EQ(word("futex", 1, 128), "FUTEX_WAIT_PRIVATE");
  EXPECT_EQ(word("futex", 1, 9 | 128 | 256), "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME");
  EXPECT_EQ(word("prctl", 0, 15), "PR_SET_NAME");
}

TEST(Flags, Files) {
  EXPECT_EQ(words("fcntl", 1, {3, F_SETFL, O_NONBLOCK}), "F_SETFL");
  EXPECT_EQ(words("fcntl", 2, {3, F_SETFL, O_NONBLOCK | O_RDWR}), "O_RDWR|O_NONBLOCK");
  EXPECT_EQ(words("fcntl", 2, {3, F_SETFD, FD_CLOEXEC}), "FD_CLOEXEC");
  EXPECT_EQ(words("fcntl", 2, {3, F_DUPFD, 10}), "(none)") << "a number";
  EXPECT_EQ(word("unlinkat", 2, AT_REMOVEDIR), "AT_REMOVEDIR");
  EXPECT_EQ(word("faccessat2", 3, AT_EACCESS), "AT_EACCESS");
  EXPECT_EQ(word("access", 1, R_OK | X_OK), "R_OK|X_OK");
  EXPECT_EQ(word("access", 1, F_OK), "F_OK");
  EXPECT_EQ(word("pipe2", 1, 0), "0");
  EXPECT_EQ(word("lseek", 2, SEEK_END), "SEEK_END");
}

TEST(Flags, OtherArguments) {
  EXPECT_EQ(words("read", 0, {3, 0, 0}), "(none)");
  EXPECT_EQ(words("openat", 1, {0, 0, 0}), "(none)");
  EXPECT_EQ(words("openat", 7, {0, 0, 0}), "(none)");
  EXPECT_EQ(words("", 0, {0}), "(none)");
  EXPECT_EQ(words("mmap,mmap2", 3, {0, 0, 0, 1}), "(none)");
}

TEST(Flags, Signals) {
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_name(SIGRTMIN), "SIGRTMIN");
  EXPECT_EQ(signal_name(SIGRTMAX), fmt::format("SIGRTMIN+{}", SIGRTMAX - SIGRTMIN));
  EXPECT_EQ(signal_name(0), "signal 0");
  EXPECT_EQ(signal_name(32), "signal 32") << "the C library keeps it for itself";
  EXPECT_EQ(signal_name(65), "signal 65");
  for (int number = 1; number <= SIGRTMAX; number++)
    if (auto name = signal_name(number); name.starts_with("SIG")) {
      EXPECT_EQ(signal_number(name), number);
      EXPECT_EQ(signal_number(name.substr(3)), number);
    }
  EXPECT_EQ(signal_number("segv"), SIGSEGV);
  EXPECT_EQ(signal_number("11"), SIGSEGV);
  EXPECT_EQ(signal_number("RTMAX"), SIGRTMAX);
  EXPECT_EQ(signal_number("SIGRTMAX-2"), SIGRTMAX - 2);
  for (auto* wrong : {"SIGNONSENSE", "", "SIG", "0", "65", "99", "RTMAX-31", "RTMAX+1", "RTMIN+"})
    EXPECT_EQ(signal_number(wrong), 0) << wrong;
}

}  // namespace
}  // namespace coretap
