#include "stacks/stack_sums.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cstring>
#include <string>
#include <string_view>
#include <unordered_set>

#include "program/maps.hpp"
#include "program/variables.hpp"

namespace coretap {

namespace {

stack_sum difference(const stack_sum& now, const stack_sum& then) {
  // The sum was removed meanwhile, and restarted at 0.
  if (now.count < then.count) return now;
  return {.total_ns = now.total_ns - then.total_ns, .count = now.count - then.count};
}

constexpr MapName kSums("stack_counts");
constexpr MapName kStacks("stacks");

std::size_t parties_of(std::size_t value_bytes) {
  return (value_bytes - sizeof(stack_sum)) / sizeof(stack_party);
}

std::vector<stack_party> parties(std::string_view value) {
  std::vector<stack_party> all(parties_of(value.size()));
  memcpy(all.data(), value.data() + sizeof(stack_sum), all.size() * sizeof(stack_party));
  return all;
}

/// Deletes stacks that no sum refers to.
void forget_stacks(Session& s) {
  std::vector<std::uint64_t> known;
  s.source->each_entry(kStacks, [&](std::string_view key, std::string_view) {
    memcpy(&known.emplace_back(), key.data(), sizeof known.back());
  });
  std::unordered_set<std::uint64_t> used;
  const bool all = s.source->each_entry(kSums, [&](std::string_view, std::string_view value) {
    for (auto& p : parties(value)) used.insert({p.kernel, p.user});
  });
  if (!all) return;
  // Programs do not store a stack again until this flag reports that some are missing.
  const bool missed = true;
  set_live(s, "stack_missed", &missed, sizeof missed);
  for (auto& id : known)
    if (!used.contains(id)) s.source->erase(kStacks, &id);
}

}  // namespace

std::vector<StackSums::Entry> StackSums::read(const Session& s, Sums* before,
                                              std::vector<std::uint64_t>* idle) {
  std::vector<Entry> entries;
  s.source->each_entry(kSums, [&](std::string_view key, std::string_view value) {
    if (key.size() < sizeof(std::uint64_t) ||
        value.size() < sizeof(stack_sum) + sizeof(stack_party))
      return;
    Entry e;
    memcpy(&e.sum, value.data(), sizeof e.sum);
    if (before) {
      std::uint64_t id = 0;
      memcpy(&id, key.data(), sizeof id);
      auto [then, fresh] = before->try_emplace(id);
      auto now = e.sum;
      e.sum = difference(now, then->second);
      then->second = now;
      if (idle && !fresh && !e.sum.count) idle->push_back(id);
    }
    if (!e.sum.count) return;
    e.parties = parties(value);
    // The first entry is the task itself; a waker has a name or cgroup, or is not a task.
    while (e.parties.size() > 1 && !e.parties.back().cgroup && e.parties.back().state == STACK_TASK)
      e.parties.pop_back();
    entries.push_back(std::move(e));
  });
  return entries;
}

std::vector<StackSums::Entry> StackSums::read_since_last(const Session& s) {
  idle_.clear();
  return read(s, &before_, &idle_);
}

void StackSums::forget_idle(Session& s) {
  auto *counts = s.map(kSums), *stacks = s.map(kStacks);
  if (!counts || !stacks || idle_.empty()) return;
  // A sum has at most two stacks for each of its tasks.
  if (before_.size() <= bpf_map__max_entries(counts) / 2 &&
      before_.size() * 2 * parties_of(value_bytes(counts)) <= bpf_map__max_entries(stacks) / 2)
    return;
  std::string last(value_bytes(counts), '\0');
  for (auto id : std::exchange(idle_, {})) {
    if (!take_out(bpf_map__fd(counts), &id, last.data())) continue;
    stack_sum sum;
    memcpy(&sum, last.data(), sizeof sum);
    forgotten_.count += sum.count;
    forgotten_.total_ns += sum.total_ns;
    before_.erase(id);
  }
  forget_stacks(s);
}

}  // namespace coretap
