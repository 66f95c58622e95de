// Capabilities (capabilities(7)) of this process: which it has, which are missing, giving up the
// rest.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

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

/// Of any capability; the number itself for one that is newer than this program.
std::string capability_name(std::uint64_t number);
/// "CAP_KILL", "kill", "5"; none if this kernel has no such.
std::optional<std::uint64_t> capability_number(std::string_view text);
/// The highest number that this kernel has.
std::uint64_t last_capability();

class CapabilitySet {
 public:
  CapabilitySet() = default;
  CapabilitySet(std::initializer_list<Capability> all) {
    for (auto capability : all) add(capability);
  }
  void add(Capability capability) { bits_ |= bit(capability); }
  void add(const CapabilitySet& others) { bits_ |= others.bits_; }
  /// CAP_SYS_ADMIN holds what was split off from it (5.8, 5.9).
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

/// Those in effect for this process.
CapabilitySet own_capabilities();

/// The value of kernel.perf_event_paranoid, if it lets only CAP_SYS_ADMIN open perf events.
std::optional<long long> perf_events_for_admin();

/// Why a perf event was refused with this error, if CAP_PERFMON is not enough. Debian and its
/// relatives have a value of kernel.perf_event_paranoid that asks for more. Perf events on user
/// functions need more since 6.16 (ba677dbe77af, also in stable kernels of its time).
std::string perf_capability_missing(int error, bool user_function = false);

/// Which of the capabilities without which nothing can be traced this process lacks: "CAP_BPF and
/// CAP_PERFMON"; empty: nothing.
std::string missing_capabilities();

/// Keeps those capabilities of this process that `keep` names, and those of `reserve` without
/// effect until AllPermitted; gives up the others permanently. Programs that it starts get none.
void retain_capabilities(const CapabilitySet& keep, const CapabilitySet& reserve = {});

/// Puts the effective set back when it goes.
class EffectiveFor {
 public:
  EffectiveFor(const EffectiveFor&) = delete;
  EffectiveFor& operator=(const EffectiveFor&) = delete;

 protected:
  explicit EffectiveFor(std::uint64_t wanted);  ///< those of it that are permitted
  ~EffectiveFor();

 private:
  std::uint64_t before_;
};

/// While it lives only these capabilities are effective.
struct EffectiveOnly : EffectiveFor {
  explicit EffectiveOnly(const CapabilitySet& keep)
      : EffectiveFor(own_capabilities().bits() & keep.bits()) {}
};

/// While it lives all that this process has kept is effective.
struct AllPermitted : EffectiveFor {
  AllPermitted() : EffectiveFor(~std::uint64_t{0}) {}
};

}  // namespace coretap
