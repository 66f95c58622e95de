#include "stacks/stacks.hpp"

#include "expect.hpp"

extern "C" __attribute__((noinline, used)) int coretap_stacks_test_function(int n) {
  return n * 3 + 1;
}

namespace coretap {
namespace {

constexpr std::uint64_t kNowhere = 0x10;  // in the first page, which no process maps

stack with(std::initializer_list<std::uint64_t> addresses) {
  stack s{};
  for (auto a : addresses) s.ip[s.depth++] = a;
  return s;
}

std::uint64_t here() { return reinterpret_cast<std::uint64_t>(&coretap_stacks_test_function); }

TEST(Stacks, UserFrames) {
  Stacks stacks({});
  auto frames = stacks.user(getpid(), with({here(), here() + 2, kNowhere}));
  EXPECT_EQ(frames,
            (Words{"coretap_stacks_test_function", "coretap_stacks_test_function", "[unknown]"}));
}

// Callers' addresses are return addresses, after the call: a function may end with one.
TEST(Stacks, OnlyTheLeafIsWhereItStands) {
  Stacks stacks({.offsets = true});
  auto frames = stacks.user(getpid(), with({here(), here()}));
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0], "coretap_stacks_test_function+0x0");
  EXPECT_FALSE(frames[1].starts_with("coretap_stacks_test_function")) << frames[1];
  EXPECT_EQ(stacks.user(getpid(), with({here() + 1, here() + 1})),
            Words(2, "coretap_stacks_test_function+0x1"));
}

TEST(Stacks, Modules) {
  Stacks stacks({.offsets = true, .modules = true});
  auto frames = stacks.user(getpid(), with({here(), kNowhere}));
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_TRUE(frames[0].starts_with("coretap_stacks_test_function+0x0 (") &&
              frames[0].ends_with(")"))
      << frames[0];
  EXPECT_EQ(frames[1], "[unknown]") << "in no module";
}

// The depth comes from a map: it is limited to the array.
TEST(Stacks, DepthIsBounded) {
  Stacks stacks({});
  stack s{};
  EXPECT_TRUE(stacks.user(getpid(), s).empty());
  EXPECT_TRUE(stacks.kernel(s).empty());
  s.depth = UINT16_MAX;
  EXPECT_EQ(stacks.user(getpid(), s).size(), static_cast<std::size_t>(STACK_DEPTH));
  EXPECT_LE(stacks.kernel(s).size(), static_cast<std::size_t>(STACK_DEPTH));
}

TEST(Stacks, ProcessesThatAreNot) {
  Stacks stacks({.modules = true});
  for (pid_t pid : {-1, 0, 0x7fffffff}) {
    stacks.remember(pid, 0, 0, 0);
    EXPECT_EQ(stacks.user(pid, with({here()})), Words{"[unknown]"}) << pid;
  }
}

/// Addresses of kernel functions, if this process may see them; 0: none.
std::uint64_t kernel_address(std::string_view wanted) {
  std::ifstream in("/proc/kallsyms");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::uint64_t address = 0;
    std::string type, name;
    words >> std::hex >> address >> type >> name;
    if (name == wanted) return address;
  }
  return 0;
}

TEST(Stacks, KernelFrames) {
  auto read = kernel_address("vfs_read"), run = kernel_address("bpf_trace_run1");
  Stacks plain({}), offsets({.offsets = true});
  EXPECT_EQ(plain.kernel(with({kNowhere})), Words{"[unknown]"});
  if (!read) GTEST_SKIP() << "kernel addresses are hidden here";
  EXPECT_EQ(plain.kernel(with({read + 8, kNowhere})), (Words{"vfs_read", "[unknown]"}));
  EXPECT_EQ(offsets.kernel(with({read + 8})), Words{"vfs_read+0x8"});
  if (!run) return;
  // Our program's frames at the leaf are not shown; further up they may matter to the user.
  EXPECT_EQ(plain.kernel(with({run + 8, read + 8, run + 8})),
            (Words{"vfs_read", "bpf_trace_run1"}));
  EXPECT_TRUE(plain.kernel(with({run + 8})).empty());
}

}  // namespace
}  // namespace coretap
