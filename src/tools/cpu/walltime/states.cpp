#include "tools/cpu/walltime/states.hpp"

#include <algorithm>

#include "stacks/wait_rules.hpp"

namespace coretap::wall {

namespace {

Column column_of(WaitClass of) {
  switch (of) {
    case WaitClass::disk:
      return kDisk;
    case WaitClass::memory:
      return kMemory;
    case WaitClass::lock:
      return kLock;
    case WaitClass::peer:
      return kPeer;
    case WaitClass::work:
      return kWork;
    default:
      return kOther;
  }
}

}  // namespace

const std::vector<State>& states() {
  static const auto kStates = [] {
    std::vector<State> all = {
        {"cpu", "", kCpu, "running"},
        {"cpu.irq", "", kCpu, "on a CPU that handled interrupts"},
        {"cpu.stolen", "", kCpu, "on a CPU that the hypervisor gave to others"},
        {"queue.busy", "", kQueue, "queued; the CPUs that it may use were busy"},
        {"queue.idle", "", kQueue, "queued although a CPU that it may use was idle"},
        {"queue.limit", "", kLimit, "queued; its cgroup had used its CPU quota"},
        {"unknown", "", kOther, "an event was not seen"}};
    for (auto& r : wait_reasons()) {
      bool stopped = r.of == WaitClass::stopped;
      all.push_back({(stopped ? "" : "wait.") + std::string(r.name), "", column_of(r.of),
                     (stopped ? "" : "waited for ") + std::string(r.doc)});
    }
    for (auto& s : all) {
      s.key = s.name;
      std::ranges::replace(s.key, '.', '_');
    }
    return all;
  }();
  return kStates;
}

namespace {

/// Null: there is no such key.
bool By::*key_of(std::string_view key) {
  if (key == "process" || key == "pid") return &By::process;
  if (key == "thread" || key == "tid") return &By::thread;
  if (key == "comm") return &By::comm;
  if (key == "uid") return &By::uid;
  if (key == "cgroup") return &By::cgroup;
  if (key == "container") return &By::container;
  return key == "unit" ? &By::unit : nullptr;
}

}  // namespace

By::By(const std::vector<std::string>& keys) {
  process = keys.empty();
  for (auto& key : keys)
    if (auto member = key_of(key)) this->*member = true;
}

std::string_view By::unknown(const std::vector<std::string>& keys) {
  for (auto& key : keys)
    if (!key_of(key)) return key;
  return {};
}

std::array<std::uint64_t, kColumns> Row::columns() const {
  std::array<std::uint64_t, kColumns> all{};
  for (std::size_t i = 0; i < sums.size(); i++) all[states()[i].column] += sums[i].ns;
  return all;
}

std::uint64_t Row::states_ns() const {
  std::uint64_t ns = 0;
  for (auto& s : sums) ns += s.ns;
  return ns;
}

std::uint64_t Row::active_ns() const {
  std::uint64_t ns = 0;
  for (std::size_t i = 0; i < sums.size(); i++)
    if (states()[i].column != kWork && states()[i].name.find('.') != std::string::npos)
      ns += sums[i].ns;
  return ns + sums[WALL_CPU].ns;
}

std::size_t Row::longest() const {
  std::size_t best = WALL_BUSY;
  for (std::size_t i = WALL_BUSY; i < sums.size(); i++)
    if (sums[i].longest_ns > sums[best].longest_ns) best = i;
  return best;
}

std::array<std::uint64_t, kColumns> shares(const Row& row) {
  auto parts = row.columns();
  std::array<std::uint64_t, kColumns> tenths{}, rests{};
  const auto all = row.states_ns();
  if (!all) return tenths;
  std::uint64_t left = 1000;
  for (std::size_t i = 0; i < kColumns; i++) {
    auto exact = static_cast<unsigned __int128>(parts[i]) * 1000;
    tenths[i] = static_cast<std::uint64_t>(exact / all);
    rests[i] = static_cast<std::uint64_t>(exact % all);
    left -= tenths[i];
  }
  // Less than a tenth for each column, unless the times of a recording are not of one account.
  for (left = std::min<std::uint64_t>(left, kColumns); left; left--) {
    auto most = std::ranges::max_element(rests) - rests.begin();
    tenths[static_cast<std::size_t>(most)]++;
    rests[static_cast<std::size_t>(most)] = 0;
  }
  return tenths;
}

}  // namespace coretap::wall
