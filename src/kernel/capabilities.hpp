// Capabilities (capabilities(7)) of this process: querying them, reporting missing ones, dropping
// the rest.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "coretap/flags.hpp"

namespace coretap {

/// Numbers as in linux/capability.h.
enum class Capability : int {
  dac_override = 1,
  dac_read_search = 2,
  fowner = 3,
  sys_ptrace = 19,
  sys_admin = 21,
  sys_resource = 24,
  syslog = 34,
  perfmon = 38,
  bpf = 39,
  checkpoint_restore = 40,
};
std::string_view name_of(Capability capability);  ///< "CAP_BPF"

class CapabilitySet {
 public:
  CapabilitySet() = default;
  CapabilitySet(std::initializer_list<Capability> all) {
    for (auto capability : all) add(capability);
  }
  void add(Capability capability) { bits_ |= bit(capability); }
  void add(const CapabilitySet& others) { bits_ |= others.bits_; }
  /// CAP_SYS_ADMIN includes the capabilities that were split off from it (5.8, 5.9).
  bool has(Capability capability) const;
  bool empty() const { return !bits_; }
  std::string names() const;  ///< "CAP_BPF CAP_PERFMON"
  std::uint64_t bits() const { return bits_; }
  static CapabilitySet of_bits(std::uint64_t bits);

 private:
  static constexpr std::uint64_t bit(Capability capability) {
    return 1ULL << static_cast<int>(capability);
  }
  std::uint64_t bits_ = 0;
};

/// The effective capabilities of this process.
CapabilitySet own_capabilities();

/// The value of kernel.perf_event_paranoid if it permits only CAP_SYS_ADMIN to open perf events.
std::optional<long long> perf_events_for_admin();

/// Explains a refused perf event if CAP_PERFMON does not suffice. Debian and its derivatives use a
/// value of kernel.perf_event_paranoid that requires more. Perf events on user functions require
/// more since 6.16 (ba677dbe77af, also in stable kernels of that time).
std::string perf_capability_missing(int error, bool user_function = false);

/// The missing ones of the capabilities that all tracing requires: "CAP_BPF and CAP_PERFMON";
/// empty: none is missing.
std::string missing_capabilities();

/// Keeps the capabilities in `keep`, and those in `reserve` permitted but not effective until
/// AllPermitted; drops all others permanently. Programs that it starts get none.
void retain_capabilities(const CapabilitySet& keep, const CapabilitySet& reserve = {});

/// Restores the effective set on destruction.
class EffectiveFor {
 public:
  EffectiveFor(const EffectiveFor&) = delete;
  EffectiveFor& operator=(const EffectiveFor&) = delete;

 protected:
  explicit EffectiveFor(std::uint64_t wanted);  ///< sets those that are permitted
  ~EffectiveFor();

 private:
  std::uint64_t before_;
};

/// While it exists, only these capabilities are effective.
struct EffectiveOnly : EffectiveFor {
  explicit EffectiveOnly(const CapabilitySet& keep)
      : EffectiveFor(own_capabilities().bits() & keep.bits()) {}
};

/// While it exists, all permitted capabilities are effective.
struct AllPermitted : EffectiveFor {
  AllPermitted() : EffectiveFor(~std::uint64_t{0}) {}
};

}  // namespace coretap
