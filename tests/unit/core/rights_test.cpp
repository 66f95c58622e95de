#include "core/rights.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "core/config.hpp"
#include "core/session.hpp"

namespace coretap {
namespace {

/// In a child, after `prepare`: does the expectation hold?
template <class Prepare, class Holds>
bool in_child(Prepare prepare, Holds holds) {
  pid_t child = fork();
  if (child == 0) _exit(prepare() ? (holds() ? 0 : 1) : 2);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Rights, OfAnOrdinaryUser) {
  EXPECT_TRUE(in_child(
      [] { return geteuid() != 0 || setresuid(65534, 65534, 65534) == 0; },
      [] { return own_rights().empty() && missing_rights() == "CAP_BPF and CAP_PERFMON"; }));
}

TEST(Rights, AdminHoldsWhatWasSplitOff) {
  Rights admin{Right::sys_admin};
  for (auto right : {Right::bpf, Right::perfmon, Right::syslog, Right::checkpoint_restore})
    EXPECT_TRUE(admin.has(right)) << name_of(right);
  for (auto right : {Right::sys_ptrace, Right::dac_read_search, Right::sys_resource})
    EXPECT_FALSE(admin.has(right)) << name_of(right);
  EXPECT_FALSE((Rights{Right::bpf, Right::perfmon}).has(Right::sys_admin));
}

TEST(Rights, Names) {
  EXPECT_EQ((Rights{Right::perfmon, Right::bpf}).names(), "CAP_PERFMON CAP_BPF");
  EXPECT_EQ(Rights().names(), "");
}

TEST(Rights, KeptOnesAreAllThatIsLeft) {
  if (!own_rights().has(Right::sys_ptrace) || !own_rights().has(Right::bpf))
    GTEST_SKIP() << "needs rights to give up";
  EXPECT_TRUE(in_child(
      [] {
        keep_rights({Right::sys_ptrace});
        return true;
      },
      [] {
        return own_rights().bits() == Rights{Right::sys_ptrace}.bits() &&
               prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
      }));
  EXPECT_TRUE(in_child(
      [] {
        keep_rights({});
        return true;
      },
      [] { return own_rights().empty(); }));
}

/// Where a process has only CAP_SYS_ADMIN, that stands for CAP_BPF.
TEST(Rights, AdminStaysWhereItStandsForAnother) {
  if (!own_rights().bits() || !(own_rights().bits() & Rights{Right::sys_admin}.bits()))
    GTEST_SKIP() << "needs CAP_SYS_ADMIN";
  EXPECT_TRUE(in_child(
      [] {
        keep_rights({Right::sys_admin});
        keep_rights({Right::bpf});
        return true;
      },
      [] { return own_rights().bits() == Rights{Right::sys_admin}.bits(); }));
}

TEST(Rights, EachToolSaysWhatItNeeds) {
  for (auto& entry : registry()) {
    SCOPED_TRACE(entry.name);
    auto needs = needed_rights(build(entry));
    auto asks = [&](Right right) {
      return std::any_of(needs.begin(), needs.end(), [&](auto& n) { return n.right == right; });
    };
    EXPECT_TRUE(asks(Right::bpf));
    EXPECT_TRUE(asks(Right::perfmon));
    for (auto& need : needs) {
      EXPECT_FALSE(name_of(need.right).empty());
      EXPECT_FALSE(need.purpose.empty());
    }
  }
}

}  // namespace
}  // namespace coretap
