#include "coretap/flags.hpp"

#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include "expect.hpp"

namespace coretap {
namespace {

/// One of a call's arguments; the others may determine its meaning.
struct Case {
  const char* call;
  std::size_t number;
  std::vector<std::uint64_t> arguments;
  std::string_view words;
};
void expect_words(std::initializer_list<Case> cases) {
  for (auto& c : cases)
    EXPECT_EQ(argument_words(c.call, c.number, c.arguments).value_or("(none)"), c.words) << c.call;
}
/// For calls where only this argument matters.
Case one(const char* call, std::size_t number, std::uint64_t value, std::string_view words) {
  std::vector<std::uint64_t> arguments(6);
  arguments[number] = value;
  return {call, number, arguments, words};
}

TEST(Flags, Open) {
  expect_words({one("openat", 2, 0, "O_RDONLY"),
                one("open", 1, O_WRONLY | O_CREAT | O_TRUNC, "O_WRONLY|O_CREAT|O_TRUNC"),
                one("openat", 2, O_RDWR | O_SYNC, "O_RDWR|O_SYNC"),
                one("openat", 2, O_RDWR | O_DSYNC, "O_RDWR|O_DSYNC"),
                one("openat", 2, O_TMPFILE | O_RDWR, "O_RDWR|O_TMPFILE"),
                one("openat", 2, O_NDELAY, "O_RDONLY|O_NONBLOCK"),
                one("openat", 2, O_ACCMODE, "O_ACCMODE"),
                one("openat", 2, 1U << 30, "O_RDONLY|0x40000000"),
                one("openat", 2, ~std::uint64_t{0} << 32, "O_RDONLY")});  // int: the lower half
}

// Each single flag has a different name, except for aliases.
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
  constexpr std::uint64_t kType = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  expect_words({{"socket", 0, {AF_INET, kType, IPPROTO_TCP}, "AF_INET"},
                {"socket", 1, {AF_INET, kType, 0}, "SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK"},
                {"socket", 2, {AF_INET, kType, IPPROTO_TCP}, "IPPROTO_TCP"},
                {"socket", 2, {AF_INET6, SOCK_RAW, IPPROTO_ICMPV6}, "IPPROTO_ICMPV6"},
                {"socket", 2, {AF_NETLINK, SOCK_RAW, 16}, "NETLINK_GENERIC"},
                {"socket", 2, {AF_UNIX, SOCK_STREAM, 0}, "(none)"},  // a number
                {"socket", 0, {200, 0, 0}, "0xc8"},
                {"socket", 1, {0, 7 | SOCK_CLOEXEC, 0}, "SOCK_CLOEXEC|0x7"},
                {"setsockopt", 2, {3, SOL_SOCKET, SO_REUSEADDR}, "SO_REUSEADDR"},
                {"setsockopt", 2, {3, IPPROTO_TCP, 1}, "TCP_NODELAY"},
                {"setsockopt", 2, {3, IPPROTO_UDP, 1}, "(none)"},
                one("recvfrom", 3, MSG_DONTWAIT | MSG_PEEK, "MSG_PEEK|MSG_DONTWAIT")});
}

TEST(Flags, MemoryAndProcesses) {
  expect_words(
      {one("mmap", 2, PROT_READ | PROT_WRITE, "PROT_READ|PROT_WRITE"),
       one("mmap", 3, MAP_PRIVATE | MAP_ANONYMOUS, "MAP_PRIVATE|MAP_ANONYMOUS"),
       one("mmap2", 3, 3 | MAP_SYNC, "MAP_SHARED_VALIDATE|MAP_SYNC"),
       one("mmap", 3, MAP_PRIVATE | 1ULL << 40, "MAP_PRIVATE|0x10000000000"),
       one("mprotect", 2, PROT_NONE, "PROT_NONE"),
       one("madvise", 2, MADV_DONTNEED, "MADV_DONTNEED"), one("madvise", 2, 77, "0x4d"),
       one("mremap", 3, MREMAP_MAYMOVE, "MREMAP_MAYMOVE"), one("clone", 0, SIGCHLD, "SIGCHLD"),
       one("clone", 0, CLONE_VM | CLONE_VFORK | SIGCHLD, "CLONE_VM|CLONE_VFORK|SIGCHLD"),
       one("clone", 0, CLONE_VM | CLONE_THREAD, "CLONE_VM|CLONE_THREAD"), one("clone", 0, 0, "0"),
       one("unshare", 0, CLONE_NEWNET | CLONE_NEWNS, "CLONE_NEWNS|CLONE_NEWNET"),
       one("futex", 1, 128, "FUTEX_WAIT_PRIVATE"),
       one("futex", 1, 9 | 128 | 256, "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME"),
       one("prctl", 0, 15, "PR_SET_NAME")});
}

TEST(Flags, FilesAndOtherArguments) {
  expect_words({{"fcntl", 1, {3, F_SETFL, O_NONBLOCK}, "F_SETFL"},
                {"fcntl", 2, {3, F_SETFL, O_NONBLOCK | O_RDWR}, "O_RDWR|O_NONBLOCK"},
                {"fcntl", 2, {3, F_SETFD, FD_CLOEXEC}, "FD_CLOEXEC"},
                {"fcntl", 2, {3, F_DUPFD, 10}, "(none)"},  // a number
                one("unlinkat", 2, AT_REMOVEDIR, "AT_REMOVEDIR"),
                one("faccessat2", 3, AT_EACCESS, "AT_EACCESS"),
                one("access", 1, R_OK | X_OK, "R_OK|X_OK"),
                one("access", 1, F_OK, "F_OK"),
                one("pipe2", 1, 0, "0"),
                one("lseek", 2, SEEK_END, "SEEK_END"),
                {"read", 0, {3, 0, 0}, "(none)"},
                {"openat", 1, {0, 0, 0}, "(none)"},
                {"openat", 7, {0, 0, 0}, "(none)"},
                {"", 0, {0}, "(none)"},
                {"mmap,mmap2", 3, {0, 0, 0, 1}, "(none)"}});
}

TEST(Flags, Signals) {
  expect_each([](const std::string& n) { return signal_name(std::stoi(n)); },
              {"11 => SIGSEGV", "0 => signal 0", "65 => signal 65",
               "32 => signal 32"});  // reserved by the C library
  EXPECT_EQ(signal_name(SIGRTMIN), "SIGRTMIN");
  EXPECT_EQ(signal_name(SIGRTMAX), fmt::format("SIGRTMIN+{}", SIGRTMAX - SIGRTMIN));
  for (int number = 1; number <= SIGRTMAX; number++)
    if (auto name = signal_name(number); name.starts_with("SIG")) {
      for (auto& word : {name, name.substr(3)}) EXPECT_EQ(signal_number(word), number);
    }
  for (auto [word, number] : {std::pair{"segv", SIGSEGV},
                              {"11", SIGSEGV},
                              {"RTMAX", SIGRTMAX},
                              {"SIGRTMAX-2", SIGRTMAX - 2}})
    EXPECT_EQ(signal_number(word), number);
  for (auto* wrong : {"SIGNONSENSE", "", "SIG", "0", "65", "99", "RTMAX-31", "RTMAX+1", "RTMIN+"})
    EXPECT_EQ(signal_number(wrong), 0) << wrong;
}

}  // namespace
}  // namespace coretap
