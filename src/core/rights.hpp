// Rights (capabilities(7)): what a tool needs, what this process has, and giving up the rest.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/tool.hpp"

namespace coretap {

struct Session;

/// Numbers as in linux/capability.h.
enum class Right : int {
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
std::string_view name_of(Right right);  ///< "CAP_BPF"

class Rights {
 public:
  Rights() = default;
  Rights(std::initializer_list<Right> all) {
    for (auto right : all) add(right);
  }
  void add(Right right) { bits_ |= bit(right); }
  void add(const Rights& others) { bits_ |= others.bits_; }
  /// CAP_SYS_ADMIN holds what was split off from it (5.8, 5.9).
  bool has(Right right) const;
  bool empty() const { return !bits_; }
  std::string names() const;  ///< "CAP_BPF CAP_PERFMON"
  std::uint64_t bits() const { return bits_; }
  static Rights of_bits(std::uint64_t bits);

 private:
  static constexpr std::uint64_t bit(Right right) { return 1ULL << static_cast<int>(right); }
  std::uint64_t bits_ = 0;
};

/// Those in effect for this process.
Rights own_rights();

struct NeededRight {
  Right right;
  std::string_view purpose;  ///< "names of kernel functions"
  bool always;               ///< without it the tool does not run; else it can do less
};
/// What a tool asks for, by what its kernel program and its reports are made of.
std::vector<NeededRight> needed_rights(const Tool& tool);

/// The value of kernel.perf_event_paranoid, if it lets nobody but CAP_SYS_ADMIN open perf events.
std::optional<long long> perf_events_for_admin();

/// Why a perf event was refused with this error, if CAP_PERFMON is not enough. Debian and its
/// relatives have a value of kernel.perf_event_paranoid that asks for more. Perf events on user
/// functions need more since 6.16 (ba677dbe77af, also in stable kernels of its time).
std::string perf_right_missing(int error, bool user_function = false);

/// What this process lacks of the rights without which nothing can be traced: "CAP_BPF and
/// CAP_PERFMON"; empty: nothing.
std::string missing_rights();

/// Leaves this process those of its rights that `keep` names, for good, and none to programs that
/// it may start.
void keep_rights(const Rights& keep);

/// When all is attached: keeps what `s.keeps` says, and CAP_BPF where this kernel asks for it at
/// each look into a map.
void give_up_rights(Session& s);

}  // namespace coretap
