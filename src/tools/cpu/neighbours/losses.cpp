#include "tools/cpu/neighbours/losses.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace coretap::neighbours {

const std::array<PartName, kParts>& parts() {
  static const std::array<PartName, kParts> all = {{
      {"run", "RUN", "its tasks had a CPU, without interrupts"},
      {"limit", "LIMIT",
       "waits without CPU quota: that of the cgroup, or of one above, was used up"},
      {"itself", "ITSELF", "waits while tasks of the same cgroup had the CPU"},
      {"others", "OTHERS", "waits while tasks of other cgroups had the CPU"},
      {"realtime", "RT", "waits while real-time and deadline tasks of other cgroups had the CPU"},
      {"kernel", "KERNEL", "waits while threads of the kernel had the CPU"},
      {"irq", "IRQ", "interrupts, while it had a CPU and while it waited for that CPU"},
      {"idle", "IDLE", "waits while the CPU was idle: it had to be woken"},
      {"unknown", "UNKNOWN", "waits in which the owner of the CPU is not known"},
  }};
  return all;
}

namespace {

/// Is it a part of waits?
bool is_wait(std::uint64_t to) {
  return to != NEIGHBOUR(RAN) && to != NEIGHBOUR(RAN_IRQ) && to != NEIGHBOUR(UNUSED) &&
         to != NEIGHBOUR(RECLAIM_OWN) && to != NEIGHBOUR(RECLAIM_MACHINE);
}

}  // namespace

std::uint64_t Victim::wanted_ns() const {
  return std::accumulate(ns.begin(), ns.end(), std::uint64_t{0});
}

std::vector<Victim> victims(const Losses& losses, const NameOf& name) {
  std::map<std::string, Victim> all;
  std::map<std::string, std::map<std::pair<std::string, Part>, std::uint64_t>> culprits;
  std::map<std::string, std::uint64_t> interrupted;
  for (auto& entry : losses) {
    auto [victim, to] = entry.first;
    auto& sum = entry.second;
    auto whose = name(victim);
    auto& v = all[whose];
    v.name = whose;
    v.cgroups.insert(victim);
    if (is_wait(to)) {
      v.wait_ns += sum.ns;
      v.waits += sum.count;
    }
    auto culprit = [&](const std::string& who, Part kind) {
      v.ns[kind] += sum.ns;
      culprits[whose][{who, kind}] += sum.ns;
    };
    switch (to) {
      case NEIGHBOUR(RAN):
        v.ns[kRun] += sum.ns;
        break;
      case NEIGHBOUR(RAN_IRQ):
        v.ns[kIrq] += sum.ns;
        interrupted[whose] += sum.ns;
        break;
      case NEIGHBOUR(UNUSED):
        v.unused_ns += sum.ns;
        break;
      case NEIGHBOUR(RECLAIM_OWN):
        v.reclaim_own_ns += sum.ns;
        break;
      case NEIGHBOUR(RECLAIM_MACHINE):
        v.reclaim_machine_ns += sum.ns;
        break;
      case NEIGHBOUR(LIMIT):
        v.ns[kLimit] += sum.ns;
        break;
      case NEIGHBOUR(IDLE):
        v.ns[kIdle] += sum.ns;
        break;
      case NEIGHBOUR(IRQ):
        v.ns[kIrq] += sum.ns;
        break;
      case NEIGHBOUR(UNKNOWN):
        v.ns[kUnknown] += sum.ns;
        break;
      case NEIGHBOUR(KERNEL):
        culprit(name(to), victim == to ? kItself : kKernel);
        break;
      default: {
        auto who = name(to & ~NEIGHBOUR_RT);
        culprit(who, who == whose ? kItself : to & NEIGHBOUR_RT ? kRealTime : kOthers);
      }
    }
  }
  std::vector<Victim> rows;
  for (auto& [whose, v] : all) {
    // Turns include the interrupts in them.
    v.ns[kRun] -= std::min(v.ns[kRun], interrupted[whose]);
    for (auto& [who, ns] : culprits[whose]) v.culprits.push_back({who.first, who.second, ns});
    std::ranges::stable_sort(v.culprits, [](auto& a, auto& b) { return a.ns > b.ns; });
    if (v.wanted_ns() || v.reclaim_own_ns || v.reclaim_machine_ns) rows.push_back(std::move(v));
  }
  std::ranges::stable_sort(rows, [](auto& a, auto& b) { return a.lost_ns() > b.lost_ns(); });
  return rows;
}

}  // namespace coretap::neighbours
