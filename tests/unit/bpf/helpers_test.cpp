// Functions of bpf/lib that need no kernel data, run by the kernel.
#include <bit>

#include "bpf/library.hpp"
#include "expect.hpp"
#include "reports/histogram.hpp"

namespace coretap {
namespace {

class BpfHelpers : public test::WithLibrary<BpfHelpers> {
 protected:
  std::uint32_t log2(std::uint64_t value) { return library.run(library->progs.run_log2, value); }
  const hist& count(bool linear, std::uint64_t value, std::uint64_t n, std::uint64_t step) {
    auto& programs = library->progs;
    library.run(linear ? programs.run_linear_histogram : programs.run_log2_histogram, value, n,
                step);
    return data.histogram;
  }
  std::uint64_t kernel_stack(const stack& s, std::uint64_t bytes, bool key) {
    data.given_stack = s;
    library.run(library->progs.run_kernel_stack, bytes, key);
    return data.result;
  }
  std::uint64_t key_of(const stack& s, std::uint32_t depth) {
    return kernel_stack(s, depth * 8, true);
  }
  stack random_stack(std::uint32_t depth) {
    stack s{};
    s.depth = static_cast<std::uint16_t>(depth);
    for (std::uint32_t i = 0; i < depth; i++) s.ip[i] = 0xffffffff81000000 + random() % 0x1000000;
    return s;
  }
  std::mt19937_64 random{1};  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
};

TEST_F(BpfHelpers, Log2OfEveryPowerAndItsNeighbours) {
  EXPECT_EQ(log2(0), 0u);
  EXPECT_EQ(log2(1), 0u);
  for (int bit = 1; bit < 64; bit++) {
    std::uint64_t power = 1ull << bit;
    EXPECT_EQ(log2(power - 1), static_cast<std::uint32_t>(bit - 1)) << bit;
    EXPECT_EQ(log2(power), static_cast<std::uint32_t>(bit)) << bit;
    EXPECT_EQ(log2(power | (power - 1)), static_cast<std::uint32_t>(bit)) << bit;
  }
  for (int i = 0; i < 100000; i++) {
    auto v = random() >> (random() % 64);
    ASSERT_EQ(log2(v), v ? static_cast<std::uint32_t>(std::bit_width(v) - 1) : 0u) << v;
  }
}

// The kernel counts and the loader draws: both must use the same slots.
TEST_F(BpfHelpers, SlotsOfHistogramsAreThoseThatAreDrawn) {
  for (std::uint64_t step : {1, 1000, 1000000})
    for (bool linear : {false, true}) {
      const HistogramScale scale{unit::ns, 1, linear};
      for (int i = 0; i < 10000; i++) {
        auto ns = random() >> (random() % 64);
        data.histogram = {};
        auto& h = count(linear, ns, 1, step);
        ASSERT_EQ(histogram_count(h), 1u);
        ASSERT_EQ(h.total, ns);
        for (int slot = 0; slot < HIST_SLOTS; slot++) {
          if (!h.slots[slot]) continue;
          ASSERT_GE(ns / step, scale.from(slot));
          ASSERT_TRUE(ns / step < scale.below(slot) || slot == HIST_SLOTS - 1) << ns;
        }
      }
    }
  data.histogram = {};
  count(false, UINT64_MAX, 1, 1);
  count(false, 0, 1, 1);
  EXPECT_EQ(data.histogram.slots[63], 1u);
  EXPECT_EQ(data.histogram.slots[0], 1u);
}

// The kernel counts and the loader folds: a value is in the slot where it would be without.
TEST_F(BpfHelpers, FineSlotsAreEighthsOfSlots) {
  auto& fine = data.fine_histogram;
  for (std::uint64_t step : {1, 8, 10, 64, 1000, 1024}) {
    auto check = [&](std::uint64_t value) {
      data.histogram = {};
      fine = {};
      auto& h = count(false, value, 3, step);
      library.run(library->progs.run_fine_histogram, value, 3, fine_step(step));
      const auto same = folded(fine, step);
      ASSERT_EQ(memcmp(&same, &h, sizeof h), 0) << value << ' ' << step;
    };
    for (int i = 0; i < 2000; i++) check(random() >> (random() % 64));
    for (int power = 0; power < 64; power++)
      for (std::uint64_t near : {UINT64_MAX, std::uint64_t{0}, std::uint64_t{1}})
        check((std::uint64_t{1} << power) + near);
    check(0);
    check(UINT64_MAX);
  }
  // Slots are as narrow as they should be: no larger value than 9/8 of the smallest one.
  for (std::uint32_t power = 3; power < 63; power++)
    for (std::uint64_t eighth = 0; eighth < 8; eighth++) {
      fine = {};
      const std::uint64_t wide = std::uint64_t{1} << (power - 3), from = (8 + eighth) * wide;
      for (auto value : {from, from + wide - 1})
        library.run(library->progs.run_fine_histogram, value, 1, 1);
      EXPECT_EQ(fine.slots[8 * (power - 2) + eighth], 2u) << from;
    }
}

TEST_F(BpfHelpers, HistogramsOfCpus) {
  library.run(library->progs.run_waits, 5, 1);
  library.run(library->progs.run_waits, 7, 1);
  std::uint64_t slot = 0, total = 0;
  for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++) {
    hist of_cpu{};
    ASSERT_EQ(bpf_map_lookup_elem(bpf_map__fd(library->maps.waits_cpus), &cpu, &of_cpu), 0);
    slot += of_cpu.slots[2];
    total += of_cpu.total;
  }
  EXPECT_EQ(slot, 2u);
  EXPECT_EQ(total, 12u);
}

TEST_F(BpfHelpers, EqualValuesAtOnce) {
  data.histogram = {};
  for (int i = 0; i < 5; i++) count(false, 3500, 1, 1000);
  auto one = std::exchange(data.histogram, {});
  auto& all = count(false, 3500, 5, 1000);
  EXPECT_EQ(all.slots[1], 5u);
  EXPECT_EQ(all.total, 5 * 3500u);
  EXPECT_EQ(memcmp(&one, &all, sizeof one), 0);
}

TEST_F(BpfHelpers, HashesTellStacksApart) {
  std::set<std::uint64_t> seen;
  std::size_t stacks = 0;
  for (std::uint32_t depth = 0; depth <= STACK_DEPTH; depth++)
    for (int i = 0; i < (depth ? 200 : 1); i++, stacks++)
      seen.insert(key_of(random_stack(depth), depth));
  // With 24-bit addresses, one-frame stacks may collide by chance.
  EXPECT_GE(seen.size() + 5, stacks);
  EXPECT_FALSE(seen.contains(0)) << "0 means none";
}

TEST_F(BpfHelpers, EveryFrameAndItsPlaceCount) {
  auto s = random_stack(STACK_DEPTH);
  auto whole = key_of(s, STACK_DEPTH);
  for (std::uint32_t i = 0; i < STACK_DEPTH; i++) {
    auto other = s;
    other.ip[i] ^= 1;
    EXPECT_NE(key_of(other, STACK_DEPTH), whole) << i;
    other = s;
    std::swap(other.ip[i], other.ip[(i + 1) % STACK_DEPTH]);
    EXPECT_NE(key_of(other, STACK_DEPTH), whole) << i;
    EXPECT_NE(key_of(s, i), whole) << i;
  }
  // Frames beyond the depth make no difference.
  auto other = s;
  other.ip[10] = 1;
  EXPECT_EQ(key_of(s, 10), key_of(other, 10));
}

TEST_F(BpfHelpers, StackOfABytesCount) {
  auto s = random_stack(4);
  s.depth = 0;
  EXPECT_EQ(kernel_stack(s, 0, false), 0u);
  EXPECT_EQ(kernel_stack(s, static_cast<std::uint64_t>(-14), false), 0u) << "an error is no stack";
  auto id = kernel_stack(s, 4 * 8, false);
  EXPECT_EQ(data.given_stack.depth, 4u);
  EXPECT_EQ(id, key_of(s, 4));
}

// The map has room for one.
TEST_F(BpfHelpers, StoresOnceAndCountsWhatHasNoRoom) {
  data.given_stack = random_stack(4);
  data.stack_missed = false;
  auto store = [&](std::uint64_t id) { library.run(library->progs.run_store, id); };
  auto stored = [&] { return library.run(library->progs.run_stored, 77, 77) == 1; };
  store(77);
  std::uint64_t id = 77;
  stack kept{};
  ASSERT_EQ(bpf_map_lookup_elem(bpf_map__fd(library->maps.stacks), &id, &kept), 0);
  EXPECT_EQ(kept.depth, 4u);
  store(77);
  EXPECT_FALSE(data.stack_missed) << "it is there";
  EXPECT_TRUE(stored());
  store(78);
  EXPECT_TRUE(data.stack_missed);
  EXPECT_FALSE(stored()) << "asked again, once one was missed";
}

// Disks come and go: completed requests are replaced, pending ones are not.
TEST_F(BpfHelpers, RequestsThatAreGoneMakeRoom) {
  constexpr std::uint32_t kNone = 0, kNew = 1, kKnown = 2;
  auto request = [&](std::uint64_t n, bool under_way) {
    return library.run(library->progs.run_request, 0xffff888000000000 + n * 320, under_way);
  };
  for (std::uint64_t n = 0; n < library.kRequests; n++) EXPECT_EQ(request(n, true), kNew) << n;
  EXPECT_EQ(request(100, true), kNone);
  EXPECT_EQ(request(5, false), kKnown);
  EXPECT_EQ(request(101, true), kNew);
  EXPECT_EQ(request(5, true), kNone) << "its place is another's";
  EXPECT_EQ(request(101, false), kKnown);
  for (std::uint64_t n = 200; n < 300; n++) EXPECT_EQ(request(n, false), kNew) << n;
  EXPECT_EQ(request(6, true), kKnown);
}

TEST_F(BpfHelpers, EveryMemberOfAPartyCounts) {
  auto hash = [&](const stack_party& key) {
    data.given_party = key;
    library.run(library->progs.run_party);
    return data.result;
  };
  stack_party key{.kernel = 1, .user = 2, .tgid = 3, .tid = 4, .comm = "a command name"};
  auto whole = hash(key);
  for (auto change :
       {+[](stack_party& k) { k.kernel++; }, +[](stack_party& k) { k.user++; },
        +[](stack_party& k) { k.tgid++; }, +[](stack_party& k) { k.tid++; },
        +[](stack_party& k) { k.state = 1; }, +[](stack_party& k) { k.comm[0]++; },
        +[](stack_party& k) { k.comm[15]++; }, +[](stack_party& k) { std::swap(k.kernel, k.user); },
        +[](stack_party& k) { std::swap(k.tgid, k.tid); }}) {
    auto other = key;
    change(other);
    EXPECT_NE(hash(other), whole);
  }
}

}  // namespace
}  // namespace coretap
