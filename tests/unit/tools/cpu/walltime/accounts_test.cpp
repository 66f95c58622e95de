#include "tools/cpu/walltime/accounts.hpp"

#include <numeric>

#include "expect.hpp"

namespace coretap {
namespace {

constexpr std::uint64_t kProcess = 5, kRead = WALL_WAIT | 1, kWrite = WALL_WAIT | 2;

/// An account from 0 to `until`: on a CPU, and in a wait that is under way.
walltime_account account(std::uint64_t thread, std::uint64_t cpu, std::uint64_t open,
                         std::uint64_t witness = kRead) {
  walltime_account a{};
  a.thread = thread;
  a.process = kProcess;
  a.states[WALL_CPU] = {cpu, 1, cpu};
  a.open_ns = open;
  a.open_witness = open ? witness : 0;
  a.until_ns = cpu + open;
  return a;
}
std::uint64_t total(const WallOwner& o) {
  return std::accumulate(o.cells.begin(), o.cells.end(), std::uint64_t{0},
                         [](auto ns, auto& cell) { return ns + cell.second.ns; });
}
WallOwner only(const std::vector<WallOwner>& owners) {
  EXPECT_EQ(owners.size(), 1u);
  return owners.empty() ? WallOwner{} : owners.front();
}

TEST(Accounts, IntervalsAddUp) {
  Accounts accounts;
  accounts.take(account(1, 10, 90));
  accounts.take(account(2, 100, 0));
  auto first = only(accounts.report(false));
  EXPECT_EQ(first.threads, 2u);
  EXPECT_EQ(first.time_ns, 200u);
  EXPECT_EQ(total(first), 200u);
  // The wait ends after 95 ns, in a row and by another name; the second thread ends.
  auto next = account(1, 105, 0);
  next.until_ns += 95;
  accounts.take(next);
  auto ended = account(2, 150, 0);
  ended.ended = 1;
  accounts.take(ended);
  accounts.take_row({kProcess, kWrite, 7}, {95, 1, 95});
  auto second = only(accounts.report(false));
  EXPECT_EQ(second.time_ns, 150u);
  EXPECT_EQ(total(second), 150u);
  EXPECT_EQ(second.threads, 2u);
  EXPECT_FALSE(second.cells.contains({kRead, 0}));
}

// A wait that ends between the readings of accounts and rows belongs to the next interval.
TEST(Accounts, RowsReadLater) {
  Accounts accounts;
  accounts.take(account(1, 10, 0));
  accounts.take_row({kProcess, kRead, 7}, {40, 1, 40});
  auto first = only(accounts.report(false));
  EXPECT_EQ(total(first), 10u);
  auto last = account(1, 10, 0);
  last.until_ns = 50;
  accounts.take(last);
  accounts.take_row({kProcess, kRead, 7}, {40, 1, 40});
  auto second = only(accounts.report(true));
  EXPECT_EQ(second.time_ns, 40u);
  EXPECT_EQ(total(second), 40u);
}

// At the end nothing is corrected: what does not add up is seen.
TEST(Accounts, TheEndHidesNothing) {
  Accounts accounts;
  accounts.by_thread(true);
  accounts.take(account(1, 10, 0));
  accounts.take_row({1, kRead, 7}, {5, 1, 5});
  auto last = only(accounts.report(true));
  EXPECT_EQ(last.time_ns, 10u);
  EXPECT_EQ(total(last), 15u);
}

}  // namespace
}  // namespace coretap
