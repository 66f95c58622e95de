// Names of system calls, in both tables.
#include "coretap/syscalls.hpp"

#include <sys/syscall.h>

#include "expect.hpp"
#include "lib/core/shared.h"

namespace coretap {
namespace {

TEST(Syscalls, OfThisMachine) {
  EXPECT_EQ(syscall_name(SYS_read), "read");
  EXPECT_EQ(syscall_name(SYS_clone), "clone");
  EXPECT_EQ(syscall_name(SYS_exit_group), "exit_group");
  EXPECT_EQ(syscall_indices("openat").at(0), static_cast<std::uint32_t>(SYS_openat));
}

// i386 and arm share these numbers.
TEST(Syscalls, Of32Bits) {
  EXPECT_EQ(syscall_name(CALLS_COMPAT + 3), "read");
  EXPECT_EQ(syscall_name(CALLS_COMPAT + 120), "clone");
  EXPECT_NE(syscall_abi(0), syscall_abi(CALLS_COMPAT));
  EXPECT_EQ(syscall_indices("read"), (std::vector<std::uint32_t>{SYS_read, CALLS_COMPAT + 3}));
}

// Sockets have two entry points on i386, and the library has private numbers for them.
TEST(Syscalls, AllNamesLeadBack) {
  auto all = all_syscalls();
  EXPECT_GT(all.size(), 700u);
  for (auto& call : all) {
    auto index = static_cast<std::uint32_t>(call.number) + (call.compat ? CALLS_COMPAT : 0);
    EXPECT_LT(index, static_cast<std::uint32_t>(CALLS));
    EXPECT_EQ(syscall_name(index), call.name);
  }
  for (auto* name : {"read", "socket", "bind", "futex_waitv", "mseal"}) {
    auto indices = syscall_indices(name);
    EXPECT_EQ(indices.size(), 2u) << name;
    for (auto index : indices) EXPECT_EQ(syscall_name(index), name);
  }
}

TEST(Syscalls, YoungerThanTheLibrary) {
  EXPECT_EQ(syscall_name(457), "statmount");
  EXPECT_EQ(syscall_name(CALLS_COMPAT + 469), "file_setattr");
}

TEST(Syscalls, OfOtherMachines) {
  EXPECT_TRUE(is_foreign_syscall("s390_pci_mmio_read"));
#ifdef __aarch64__
  EXPECT_TRUE(is_foreign_syscall("open"));
#else
  EXPECT_FALSE(is_foreign_syscall("open"));
#endif
  for (auto* name : {"openat", "", "no_such_call"}) EXPECT_FALSE(is_foreign_syscall(name)) << name;
}

TEST(Syscalls, WithoutAName) {
  EXPECT_EQ(syscall_name(510), "syscall_510");
  EXPECT_EQ(syscall_indices("syscall_510"), (std::vector<std::uint32_t>{510, CALLS_COMPAT + 510}));
  EXPECT_EQ(syscall_name(CALLS_OTHER), "other");
  EXPECT_EQ(syscall_name(CALLS - 1), "other");
  for (auto* name : {"", "no_such_call", "syscall_", "syscall_x", "syscall_511", "syscall_-1"})
    EXPECT_TRUE(syscall_indices(name).empty()) << name;
}

}  // namespace
}  // namespace coretap
