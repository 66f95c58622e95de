#include <gtest/gtest.h>

#include "cpu/futex_owner.h"
#include "tools/cpu/blockedby/file_locks.hpp"

namespace coretap::blocked {
namespace {

constexpr char kLocks[] =
    "1: FLOCK  ADVISORY  WRITE 714 00:1b:527 0 EOF\n"
    "1: -> FLOCK  ADVISORY  WRITE 715 00:1b:527 0 EOF\n"
    "1:  -> FLOCK  ADVISORY  WRITE 716 00:1b:527 0 EOF\n"
    "2: POSIX  ADVISORY  READ 900 08:02:1048600 10 29\n"
    "3: OFDLCK ADVISORY  WRITE -1 08:02:77 0 EOF\n"
    "3: -> OFDLCK ADVISORY  WRITE 901 08:02:77 0 EOF\n"
    "nonsense\n"
    "4: -> \n";

TEST(AwaitedLocks, ByTheWaitingProcess) {
  auto locks = awaited_locks(kLocks);
  ASSERT_EQ(locks.size(), 3u);
  EXPECT_EQ(locks.at(715).holder, 714u);
  EXPECT_EQ(locks.at(716).holder, 714u);
  EXPECT_EQ(locks.at(715).inode, 527u);
  EXPECT_EQ(locks.at(715).kind, static_cast<std::uint32_t>(BLOCKED_FLOCK));
  EXPECT_FALSE(locks.contains(900));
  EXPECT_EQ(locks.at(901).holder, 0u);
  EXPECT_EQ(locks.at(901).kind, static_cast<std::uint32_t>(BLOCKED_OFD));
}

futex_owner owner(std::uint32_t command, std::uint32_t value, futex_words words) {
  return owner_of_futex(command, value, &words);
}

TEST(FutexOwner, InTheWordsOfLocks) {
  auto mutex = owner(FUTEX_WAIT, 2, {2, 0, 4711, 1, 0});
  EXPECT_EQ(mutex.kind, static_cast<std::uint32_t>(BLOCKED_FUTEX_MUTEX));
  EXPECT_EQ(mutex.tid, 4711u);
  auto pi = owner(FUTEX_LOCK_PI2, 0, {4711 | FUTEX_WAITED, 0, 0, 0, 0});
  EXPECT_EQ(pi.kind, static_cast<std::uint32_t>(BLOCKED_FUTEX_PI));
  EXPECT_EQ(pi.tid, 4711u);
  auto robust = owner(FUTEX_WAIT, 4712 | FUTEX_WAITED, {4711 | FUTEX_WAITED, 0, 0, 0, 0});
  EXPECT_EQ(robust.kind, static_cast<std::uint32_t>(BLOCKED_FUTEX_TID));
  EXPECT_EQ(robust.tid, 4711u) << "the one it has now";
  auto join = owner(FUTEX_WAIT_BITSET, 4711, {4711, 0, 0, 0, 0});
  EXPECT_EQ(join.kind, static_cast<std::uint32_t>(BLOCKED_JOIN));
}

TEST(FutexOwner, OtherWords) {
  // A lock of one word, with a pointer behind it; a condition before a mutex; a counter.
  EXPECT_EQ(owner(FUTEX_WAIT, 2, {2, 1, 0x55aa1234, 0x5555, 0}).kind,
            static_cast<std::uint32_t>(BLOCKED_FUTEX_MUTEX))
      << "its owner is no thread, which is for others to see";
  EXPECT_EQ(owner(FUTEX_WAIT, 2, {2, 0, 2, 0, 4711}).kind,
            static_cast<std::uint32_t>(BLOCKED_FUTEX_LOCK));
  EXPECT_EQ(owner(FUTEX_WAIT, 2, {2, 0, 4711, 1, GLIBC_KINDS}).tid, 0u);
  EXPECT_EQ(owner(FUTEX_WAIT, 0, {0, 0, 4711, 1, 0}).kind,
            static_cast<std::uint32_t>(BLOCKED_FUTEX));
  EXPECT_EQ(owner(FUTEX_WAIT, FUTEX_WAITED, {FUTEX_WAITED, 0, 4711, 1, 0}).tid, 0u);
  EXPECT_EQ(owner(FUTEX_WAIT, 4711, {4712, 0, 0, 0, 0}).tid, 0u) << "the word has changed";
}

}  // namespace
}  // namespace coretap::blocked
