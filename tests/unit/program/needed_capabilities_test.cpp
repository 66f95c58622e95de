#include "program/needed_capabilities.hpp"

#include <sys/prctl.h>

#include "coretap/config.hpp"
#include "expect.hpp"
#include "program/session.hpp"

namespace coretap {
namespace {

/// In a child: does it hold?
bool holds_in_child(bool (*holds)()) {
  return in_child([&] { return holds() ? 0 : 1; }) == 0;
}

TEST(CapabilitySet, OfAnOrdinaryUser) {
  EXPECT_TRUE(holds_in_child([] {
    return (geteuid() != 0 || setresuid(65534, 65534, 65534) == 0) && own_capabilities().empty() &&
           missing_capabilities() == "CAP_BPF and CAP_PERFMON";
  }));
}

TEST(CapabilitySet, AdminHoldsWhatWasSplitOff) {
  CapabilitySet admin{Capability::sys_admin};
  for (auto right :
       {Capability::bpf, Capability::perfmon, Capability::syslog, Capability::checkpoint_restore})
    EXPECT_TRUE(admin.has(right)) << name_of(right);
  for (auto right : {Capability::sys_ptrace, Capability::dac_read_search, Capability::sys_resource})
    EXPECT_FALSE(admin.has(right)) << name_of(right);
  EXPECT_FALSE((CapabilitySet{Capability::bpf, Capability::perfmon}).has(Capability::sys_admin));
}

TEST(CapabilitySet, Names) {
  EXPECT_EQ((CapabilitySet{Capability::perfmon, Capability::bpf}).names(), "CAP_PERFMON CAP_BPF");
  EXPECT_EQ(CapabilitySet().names(), "");
}

TEST(CapabilitySet, KeptOnesAreAllThatIsLeft) {
  if (!own_capabilities().has(Capability::sys_ptrace) || !own_capabilities().has(Capability::bpf))
    GTEST_SKIP() << "needs rights to give up";
  EXPECT_TRUE(holds_in_child([] {
    retain_capabilities({Capability::sys_ptrace});
    return own_capabilities().bits() == CapabilitySet{Capability::sys_ptrace}.bits() &&
           prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  }));
  EXPECT_TRUE(holds_in_child([] {
    retain_capabilities({});
    return own_capabilities().empty();
  }));
  EXPECT_TRUE(holds_in_child([] {
    retain_capabilities({Capability::sys_ptrace}, {Capability::bpf});
    bool without = !own_capabilities().has(Capability::bpf), with;
    {
      AllPermitted all;
      with = own_capabilities().has(Capability::bpf);
    }
    return without && with && !own_capabilities().has(Capability::bpf);
  }));
}

/// If a process has only CAP_SYS_ADMIN, it stands for CAP_BPF.
TEST(CapabilitySet, AdminStaysWhereItStandsForAnother) {
  if (!own_capabilities().bits() ||
      !(own_capabilities().bits() & CapabilitySet{Capability::sys_admin}.bits()))
    GTEST_SKIP() << "needs CAP_SYS_ADMIN";
  EXPECT_TRUE(holds_in_child([] {
    retain_capabilities({Capability::sys_admin});
    retain_capabilities({Capability::bpf});
    return own_capabilities().bits() == CapabilitySet{Capability::sys_admin}.bits();
  }));
}

TEST(CapabilitySet, EachToolSaysWhatItNeeds) {
  for (auto& entry : registry()) {
    SCOPED_TRACE(entry.name);
    auto tool = build(entry);
    auto needs = needed_capabilities(tool);
    if (tool.object.compressed.empty()) {
      EXPECT_EQ(needs.size(), tool.report->opens_perf_events() ? 2u : 0u);
      continue;
    }
    for (auto right : {Capability::bpf, Capability::perfmon})
      EXPECT_TRUE(std::ranges::count(needs, right, [](auto& need) { return need.capability; }))
          << name_of(right);
    for (auto& need : needs) {
      EXPECT_FALSE(name_of(need.capability).empty());
      EXPECT_FALSE(need.purpose.empty());
    }
  }
}

}  // namespace
}  // namespace coretap
