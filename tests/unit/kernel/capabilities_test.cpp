#include "kernel/capabilities.hpp"

#include <linux/capability.h>

#include "expect.hpp"

namespace coretap {
TEST(Capabilities, Names) {
  EXPECT_EQ(name_of(Capability::bpf), "CAP_BPF");
  expect_each([](const std::string& n) { return capability_name(std::stoull(n)); },
              {"0 => CAP_CHOWN", "10 => CAP_NET_BIND_SERVICE", "26 => CAP_SYS_TTY_CONFIG",
               "37 => CAP_AUDIT_READ", "40 => CAP_CHECKPOINT_RESTORE",
               "63 => 63"});  // newer than the table
  EXPECT_EQ((CapabilitySet{Capability::bpf, Capability::fowner}.names()), "CAP_FOWNER CAP_BPF");
}

TEST(Capabilities, Numbers) {
  for (std::uint64_t number = 0; number <= last_capability(); number++)
    EXPECT_EQ(capability_number(capability_name(number)), number);
  EXPECT_EQ(capability_number("kill"), std::uint64_t{CAP_KILL});
  EXPECT_EQ(capability_number("Cap_Sys_Admin"), std::uint64_t{CAP_SYS_ADMIN});
  EXPECT_EQ(capability_number("5"), 5u);
  for (auto* wrong : {"", "CAP_", "CAP_NONE", "64", "-1"})
    EXPECT_FALSE(capability_number(wrong)) << wrong;
}

}  // namespace coretap
