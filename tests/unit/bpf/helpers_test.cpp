// The pure parts of bpf/lib, compiled for the host.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <set>
#include <utility>

#include "reports/histogram.hpp"

#include "bpf/kernel/host.h"  // last: it defines names that others use
#include "bpf/kernel/walk.h"  // stack_depth

#define BPF_CORE_READ(from, ...) ((from) ? 1 : 0)
#define bpf_core_enum_value_exists(type, value) 0

namespace {

using u64 = __u64;
using s64 = __s64;
using u32 = __u32;
using u16 = __u16;
using u8 = __u8;

/// C's void *, which becomes any pointer by itself.
struct Pointer {
  void* value = nullptr;
  template <class T>
  operator T*() const {
    return static_cast<T*>(value);
  }
  explicit operator bool() const { return value != nullptr; }
};

struct task_struct {
  void* mm;
  u32 tgid, flags;
  u64 self_exec_id, parent_exec_id;
  bool in_execve;
  task_struct* real_parent;
};

Pointer cpu_slot(void* slot) { return {slot}; }
u64 counted[LEDGER_CAUSES];
void count_n(enum ledger_cause cause, u64 n) { counted[cause] += n; }
u32 task_tgid(struct task_struct*) { return 1; }
u32 task_tid(struct task_struct*) { return 1; }
void task_comm(struct task_struct*, char*) {}
task_struct* current_task() { return nullptr; }
u64 bpf_get_current_pid_tgid() { return 1; }

// A map of one entry, enough for a stack to be found again.
u64 map_key;
stack map_value;
long map_error;
Pointer bpf_map_lookup_elem(void*, const void* key) {
  return {map_key && map_key == *static_cast<const u64*>(key) ? &map_value : nullptr};
}
long bpf_map_update_elem(void*, const void* key, const void* value, u64) {
  if (map_error) return map_error;
  map_key = *static_cast<const u64*>(key);
  map_value = *static_cast<const stack*>(value);
  return 0;
}
long bpf_probe_read_user(void*, u32, const void*) { return -14; }
task_struct* bpf_get_current_task_btf() { return nullptr; }
int mapping_find(u64) { return 0; }
long bpf_get_stack(void*, void*, u32, u64) { return 0; }
long bpf_get_task_stack(struct task_struct*, void*, u32, u64) { return 0; }

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
#include "lib/aggregate.bpf.h"
SINGLE_HISTOGRAM(waits)
#include "lib/walk.bpf.h"

void meet_process(struct walk*) {}
void unwind_tell_unread() {}
#include "lib/stack.bpf.h"

TEST(BpfLog2, EveryPowerAndItsNeighbours) {
  EXPECT_EQ(log2_u64(0), 0u);
  EXPECT_EQ(log2_u64(1), 0u);
  for (int bit = 1; bit < 64; bit++) {
    u64 power = 1ull << bit;
    EXPECT_EQ(log2_u64(power - 1), static_cast<u32>(bit - 1)) << bit;
    EXPECT_EQ(log2_u64(power), static_cast<u32>(bit)) << bit;
    EXPECT_EQ(log2_u64(power | (power - 1)), static_cast<u32>(bit)) << bit;
  }
  std::mt19937_64 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  for (int i = 0; i < 100000; i++) {
    u64 v = random() >> (random() % 64);
    ASSERT_EQ(log2_u64(v), v ? static_cast<u32>(std::bit_width(v) - 1) : 0u) << v;
  }
}

// The kernel counts and the loader draws: both must mean the same slot.
TEST(BpfHistogram, SlotsAreThoseThatAreDrawn) {
  std::mt19937_64 random(2);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  for (u64 unit : {1ull, 1000ull, 1000000ull}) {
    const coretap::HistogramScale log2{coretap::unit::ns, 1}, linear{coretap::unit::ns, 1, true};
    for (int i = 0; i < 10000; i++) {
      u64 ns = random() >> (random() % 64);
      hist h{};
      hist_log2(&h, ns, 1, unit);
      ASSERT_EQ(coretap::histogram_count(h), 1u);
      ASSERT_EQ(h.total, ns);
      for (int slot = 0; slot < HIST_SLOTS; slot++) {
        if (!h.slots[slot]) continue;
        ASSERT_GE(ns / unit, log2.from(slot));
        ASSERT_TRUE(ns / unit < log2.below(slot) || slot == HIST_SLOTS - 1) << ns;
      }
      h = {};
      hist_linear(&h, ns, 1, unit);
      for (int slot = 0; slot < HIST_SLOTS; slot++) {
        if (!h.slots[slot]) continue;
        ASSERT_GE(ns / unit, linear.from(slot));
        ASSERT_TRUE(ns / unit < linear.below(slot) || slot == HIST_SLOTS - 1) << ns;
      }
    }
  }
  hist h{};
  hist_log2(&h, UINT64_MAX, 1, 1);
  hist_log2(&h, 0, 1, 1);
  EXPECT_EQ(h.slots[63], 1u);
  EXPECT_EQ(h.slots[0], 1u);
}

TEST(BpfHistogram, OfTheCpu) {
  waits_step = 1;
  waits_cpus = {};
  waits_add_n(5, 1);
  waits_add_n(7, 1);
  EXPECT_EQ(waits_cpus.slots[2], 2u);
  EXPECT_EQ(waits_cpus.total, 12u);
}

/// The key of a kernel stack, by way of the scratch.
u64 key_of(const stack& s, u32 depth) {
  stack_scratch = s;
  return kernel_stack_key(depth * 8);
}

stack random_stack(std::mt19937_64& random, u32 depth) {
  stack s{};
  s.depth = depth;
  for (u32 i = 0; i < depth; i++) s.ip[i] = 0xffffffff81000000 + random() % 0x1000000;
  return s;
}

TEST(BpfHistogram, EqualValuesAtOnce) {
  hist one{}, all{};
  for (int i = 0; i < 5; i++) hist_log2(&one, 3500, 1, 1000);
  hist_log2(&all, 3500, 5, 1000);
  EXPECT_EQ(all.slots[1], 5u);
  EXPECT_EQ(all.total, 5 * 3500u);
  EXPECT_EQ(memcmp(&one, &all, sizeof one), 0);
}

TEST(BpfStackHash, TellsStacksApart) {
  std::mt19937_64 random(3);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  std::set<u64> seen;
  int stacks = 0;
  for (u32 depth = 0; depth <= STACK_DEPTH; depth++) {
    for (int i = 0; i < 200; i++) {
      auto s = random_stack(random, depth);
      seen.insert(key_of(s, depth));
      stacks++;
      if (!depth) break;  // there is but one
    }
  }
  // With 24 bits of address a stack of one frame may come twice by chance.
  EXPECT_GE(seen.size() + 5, static_cast<std::size_t>(stacks));
  EXPECT_FALSE(seen.contains(0)) << "0 means none";
}

TEST(BpfStackHash, EveryFrameAndItsPlaceCount) {
  std::mt19937_64 random(4);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  auto s = random_stack(random, STACK_DEPTH);
  auto whole = key_of(s, STACK_DEPTH);
  for (u32 i = 0; i < STACK_DEPTH; i++) {
    auto other = s;
    other.ip[i] ^= 1;
    EXPECT_NE(key_of(other, STACK_DEPTH), whole) << i;
    other = s;
    std::swap(other.ip[i], other.ip[(i + 1) % STACK_DEPTH]);
    EXPECT_NE(key_of(other, STACK_DEPTH), whole) << i;
    EXPECT_NE(key_of(s, i), whole) << i;
  }
  // What is beyond the depth does not.
  auto other = s;
  other.ip[10] = 1;
  EXPECT_EQ(key_of(s, 10), key_of(other, 10));
}

TEST(BpfStackId, OfABytesCount) {
  std::mt19937_64 random(5);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  auto s = random_stack(random, 4);
  EXPECT_EQ(kernel_stack_id(0), 0u);
  EXPECT_EQ(kernel_stack_id(-14), 0u) << "an error is no stack";
  s.depth = 0;
  stack_scratch = s;  // where the kernel has left it
  EXPECT_EQ(kernel_stack_id(4 * 8), key_of(s, 4));
  EXPECT_EQ(stack_scratch.depth, 4u);
}

TEST(BpfStackStore, StoresOnceAndCountsWhatHasNoRoom) {
  std::mt19937_64 random(6);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  auto s = random_stack(random, 4);
  map_key = 0;
  map_error = 0;
  stack_missed = false;
  stack_store(&s, 77);
  EXPECT_EQ(map_key, 77u);
  EXPECT_EQ(map_value.depth, 4u);
  map_error = -7;  // a full map of either kind: E2BIG, ENOMEM
  stack_store(&s, 77);
  EXPECT_FALSE(stack_missed) << "it is there";
  EXPECT_TRUE(stack_stored(77, 77));
  stack_store(&s, 78);
  EXPECT_TRUE(stack_missed);
  EXPECT_FALSE(stack_stored(77, 77)) << "asked again, once one was missed";
  map_error = 0;
}

TEST(BpfPartyHash, EveryMemberCounts) {
  stack_party key{};
  key.kernel = 1;
  key.user = 2;
  key.tgid = 3;
  key.tid = 4;
  memcpy(key.comm, "a command name", 15);
  auto whole = party_hash(&key);
  for (auto change :
       {+[](stack_party& k) { k.kernel++; }, +[](stack_party& k) { k.user++; },
        +[](stack_party& k) { k.tgid++; }, +[](stack_party& k) { k.tid++; },
        +[](stack_party& k) { k.state = 1; }, +[](stack_party& k) { k.comm[0]++; },
        +[](stack_party& k) { k.comm[15]++; }, +[](stack_party& k) { std::swap(k.kernel, k.user); },
        +[](stack_party& k) { std::swap(k.tgid, k.tid); }}) {
    auto other = key;
    change(other);
    EXPECT_NE(party_hash(&other), whole);
  }
}

}  // namespace
