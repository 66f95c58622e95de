#include "kernel/capabilities.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "coretap/flags.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"

namespace coretap {

namespace {

struct Sets {
  std::uint64_t effective = 0, permitted = 0;
};

Sets get_sets() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data)) return {};
  return {data[0].effective | std::uint64_t{data[1].effective} << 32,
          data[0].permitted | std::uint64_t{data[1].permitted} << 32};
}

void set_sets(const Sets& sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  for (int half = 0; half < 2; half++) {
    data[half].effective = static_cast<__u32>(sets.effective >> 32 * half);
    data[half].permitted = static_cast<__u32>(sets.permitted >> 32 * half);
  }
  syscall(SYS_capset, &header, data);
}

}  // namespace

std::string_view name_of(Capability capability) {
  return capability_words()[static_cast<std::size_t>(capability)].name;
}

std::string capability_name(std::uint64_t number) {
  auto known = capability_words();
  return number < known.size() ? std::string(known[number].name) : std::to_string(number);
}

std::optional<std::uint64_t> capability_number(std::string_view text) {
  if (auto number = parse_unsigned(text))
    return *number <= last_capability() ? number : std::nullopt;
  auto name = upper_case(text);
  if (!name.starts_with("CAP_")) name.insert(0, "CAP_");
  for (auto& capability : capability_words())
    if (capability.name == name) return capability.value;
  return {};
}

std::uint64_t last_capability() {
  auto last = read_number("/proc/sys/kernel/cap_last_cap");
  return last && *last >= 0 ? static_cast<std::uint64_t>(*last) : capability_words().size() - 1;
}

bool CapabilitySet::has(Capability capability) const {
  if (bits_ & bit(capability)) return true;
  switch (capability) {
    case Capability::bpf:
    case Capability::perfmon:
    case Capability::syslog:
    case Capability::checkpoint_restore:
      return bits_ & bit(Capability::sys_admin);
    default:
      return false;
  }
}

CapabilitySet CapabilitySet::of_bits(std::uint64_t bits) {
  CapabilitySet all;
  all.bits_ = bits;
  return all;
}

std::string CapabilitySet::names() const {
  std::string text;
  for (auto& [name, number, mask] : capability_words())
    if (bits_ >> number & 1) text += (text.empty() ? "" : " ") + std::string(name);
  return text;
}

CapabilitySet own_capabilities() { return CapabilitySet::of_bits(get_sets().effective); }

std::optional<long long> perf_events_for_admin() {
  constexpr long long kDistributions = 3;  // mainline kernels have values up to 2
  auto paranoid = read_number("/proc/sys/kernel/perf_event_paranoid");
  return paranoid && *paranoid >= kDistributions ? std::optional<long long>(*paranoid)
                                                 : std::nullopt;
}

std::string perf_capability_missing(int error, bool user_function) {
  if (error != EACCES || own_capabilities().has(Capability::sys_admin)) return {};
  if (auto paranoid = perf_events_for_admin())
    return fmt::format(": kernel.perf_event_paranoid is {}, which asks for CAP_SYS_ADMIN",
                       *paranoid);
  return user_function ? ": this kernel asks for CAP_SYS_ADMIN" : "";
}

std::string missing_capabilities() {
  auto mine = own_capabilities();
  std::string missing;
  for (auto capability : {Capability::bpf, Capability::perfmon})
    if (!mine.has(capability))
      missing += (missing.empty() ? "" : " and ") + std::string(name_of(capability));
  return missing;
}

void retain_capabilities(const CapabilitySet& keep, const CapabilitySet& reserve) {
  auto sets = get_sets();
  // CAP_SYS_ADMIN includes CAP_BPF and CAP_PERFMON: keep it where these are not permitted.
  auto kept = sets.permitted & keep.bits();
  if (keep.bits() & ~kept & CapabilitySet{Capability::bpf, Capability::perfmon}.bits())
    kept |= sets.permitted & CapabilitySet{Capability::sys_admin}.bits();
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  set_sets({sets.effective & kept, kept | (sets.permitted & reserve.bits())});
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

EffectiveFor::EffectiveFor(std::uint64_t wanted) {
  auto sets = get_sets();
  before_ = sets.effective;
  set_sets({sets.permitted & wanted, sets.permitted});
}

EffectiveFor::~EffectiveFor() {
  auto sets = get_sets();
  set_sets({sets.permitted & before_, sets.permitted});
}

}  // namespace coretap
