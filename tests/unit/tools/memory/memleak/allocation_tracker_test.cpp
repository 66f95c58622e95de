// Outstanding allocations, from entries and notes as the kernel program writes them.
#include "tools/memory/memleak/allocation_tracker.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

constexpr std::uint64_t kPage = 4096;

alloc_key key(std::uint64_t address, std::uint32_t owner = 7) { return {address, owner, 0}; }

alloc_info block(std::uint64_t bytes, std::uint64_t time_ns, std::uint64_t stack = 1,
                 std::uint32_t tgid = 7, const char* comm = "app") {
  alloc_info h{};
  h.bytes = bytes;
  h.time_ns = time_ns;
  h.stack = stack;
  h.tgid = tgid;
  strncpy(h.comm, comm, sizeof h.comm - 1);
  return h;
}
alloc_info mapping(std::uint64_t pages, std::uint64_t time_ns) {
  auto h = block(pages * kPage, time_ns);
  h.mapping = 1;
  return h;
}
alloc_note unmapped(std::uint64_t address, std::uint64_t pages, std::uint64_t time_ns,
                    std::uint32_t owner = 7) {
  return {time_ns, address, pages * kPage, owner, owner, ALLOC_UNMAPPED, 0};
}
alloc_note gone(alloc_note_kind kind, std::uint64_t time_ns, std::uint32_t owner = 7) {
  return {time_ns, 0, 0, owner, owner, static_cast<std::uint32_t>(kind), 0};
}

struct Tracking : testing::Test {
  /// Rows of a report, each "BYTES in COUNT of TGID COMM", with a "+" if its owner has ended.
  Words finish() {
    Words all;
    for (auto& r : tracker.finish())
      all.push_back(fmt::format("{} in {} of {} {}{}", r.bytes, r.count, r.tgid, r.comm,
                                r.exited ? "+" : ""));
    std::ranges::sort(all);
    return all;
  }
  AllocationTracker tracker;
};

TEST_F(Tracking, SumsByStackAndOwner) {
  tracker.begin({});
  EXPECT_TRUE(tracker.add(key(16), block(10, 5)));
  EXPECT_TRUE(tracker.add(key(32), block(20, 3)));
  EXPECT_TRUE(tracker.add(key(48), block(1, 4, 2)));
  EXPECT_TRUE(tracker.add(key(16, 8), block(100, 9, 1, 8)));
  auto rows = tracker.finish();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(rows[0].bytes == 30 && rows[0].count == 2 && rows[0].comm == "app");
  EXPECT_TRUE(rows[0].oldest_ns == 3 && rows[0].newest_ns == 5 && rows[0].blocks.empty());
  EXPECT_EQ(rows[1].tgid, 8u);
  EXPECT_EQ(rows[2].stack, 2u);
  tracker.begin({});
  EXPECT_EQ(finish(), Words());
}

TEST_F(Tracking, YoungOnesAreLeftOut) {
  tracker.begin({.until_ns = 100, .blocks = true});
  EXPECT_TRUE(tracker.add(key(16), block(10, 100)));
  EXPECT_TRUE(tracker.add(key(32), block(20, 101)));
  auto rows = tracker.finish();
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(rows[0].blocks.size(), 1u);
  EXPECT_EQ(rows[0].blocks[0].address, 16u);
}

TEST_F(Tracking, TheKernelsBelongToNobodyInParticular) {
  tracker.begin({});
  tracker.add(key(1, 0), block(10, 1, 1, 7));
  tracker.add(key(2, 0), block(10, 1, 1, 7));
  tracker.add(key(3, 0), block(10, 1, 2, 7));
  tracker.add(key(4, 0), block(10, 1, 2, 8));
  EXPECT_EQ(finish(), (Words{"20 in 2 of 0 ", "20 in 2 of 7 app"}));
}

TEST_F(Tracking, ProcessesThatEndAreShownOnce) {
  tracker.note(gone(ALLOC_OWNER_EXITED, 50));
  EXPECT_TRUE(tracker.owners_ended());
  tracker.begin({});
  EXPECT_FALSE(tracker.add(key(16), block(10, 5)));
  EXPECT_TRUE(tracker.add(key(32), block(1, 60))) << "of a later process with its number";
  EXPECT_EQ(finish(), (Words{"1 in 1 of 7 app", "10 in 1 of 7 app+"}));
  EXPECT_FALSE(tracker.owners_ended());
  tracker.begin({});
  EXPECT_TRUE(tracker.add(key(32), block(1, 60)));
  EXPECT_EQ(finish(), Words{"1 in 1 of 7 app"});
  // After exec they are forgotten.
  tracker.note(gone(ALLOC_OWNER_EXECED, 70));
  tracker.begin({});
  EXPECT_FALSE(tracker.add(key(16), block(10, 65)));
  EXPECT_EQ(finish(), Words());
}

TEST(AllocationTracker, PartsThatWereUnmapped) {
  struct {
    std::vector<alloc_note> notes;
    std::uint64_t pages, pieces;
  } cases[] = {
      {{unmapped(0x10000, 2, 9)}, 6, 1},
      {{unmapped(0x10000 + 5 * kPage, 3, 9)}, 5, 1},
      {{unmapped(0x10000 + 3 * kPage, 2, 9)}, 6, 2},
      {{unmapped(0x10000 - kPage, 3, 9), unmapped(0x10000 + 7 * kPage, 30, 9)}, 5, 1},
      {{unmapped(0x10000 + kPage, 1, 9), unmapped(0x10000 + kPage, 2, 9)}, 6, 2},
      {{unmapped(0x10000, 2, 9, 8)}, 8, 1},           // another process
      {{unmapped(0x10000, 2, 5)}, 8, 1},              // before it was mapped
      {{unmapped(0x10000 + 8 * kPage, 2, 9)}, 8, 1},  // after it
      {{unmapped(0x10000 - 4 * kPage, 4, 9)}, 8, 1},  // before it
      {{unmapped(0, 1000, 9)}, 0, 0},
      {{unmapped(0x10000, 4, 9), unmapped(0x10000 + 4 * kPage, 4, 10)}, 0, 0},
  };
  for (auto& c : cases) {
    AllocationTracker tracker;
    for (auto& note : c.notes) tracker.note(note);
    for (int report = 0; report < 2; report++) {
      tracker.begin({.blocks = true});
      EXPECT_EQ(tracker.add(key(0x10000), mapping(8, 5)), c.pieces > 0);
      auto rows = tracker.finish();
      if (!c.pieces) {
        EXPECT_TRUE(rows.empty());
        break;  // the entry has been removed, and with it the reason for the notes
      }
      ASSERT_EQ(rows.size(), 1u);
      EXPECT_EQ(rows[0].bytes, c.pages * kPage);
      EXPECT_EQ(rows[0].count, c.pieces);
      EXPECT_EQ(rows[0].blocks.size(), c.pieces);
    }
  }
}

// Blocks of malloc cannot be split; a mapping's size may not be a multiple of the page size.
TEST_F(Tracking, OddSizes) {
  tracker.note(unmapped(0x10000 + kPage, 1, 9));
  tracker.begin({});
  auto odd = mapping(0, 5);
  odd.bytes = kPage + 100;
  EXPECT_TRUE(tracker.add(key(0x10000), odd));
  EXPECT_EQ(tracker.finish().at(0).bytes, kPage);
  tracker.begin({});
  EXPECT_TRUE(tracker.add(key(0x10000), block(3 * kPage, 5)));
  EXPECT_EQ(tracker.finish().at(0).bytes, 3 * kPage);
}

TEST_F(Tracking, NotesWithoutEffectGo) {
  for (std::uint64_t i = 0; !tracker.crowded(); i++) {
    ASSERT_LT(i, 1u << 20);
    tracker.note(unmapped(0x1000000 + 8 * i * kPage, 1, 9));
  }
  tracker.begin_to_forget();
  tracker.keep_notes_of(key(0x1000000), mapping(8, 5));
  tracker.forget_notes();
  EXPECT_FALSE(tracker.crowded());
  tracker.begin({});
  tracker.add(key(0x1000000), mapping(8, 5));
  EXPECT_EQ(tracker.finish().at(0).bytes, 7 * kPage);
}

TEST_F(Tracking, SumsBelowZeroAreNotShown) {
  tracker.begin({});
  alloc_sum sum{.bytes = 30, .count = 2, .newest_ns = 5, .tgid = 7};
  EXPECT_TRUE(tracker.add(alloc_site{1, 7, 0}, sum));
  sum.count = static_cast<std::uint64_t>(-1);
  EXPECT_TRUE(tracker.add(alloc_site{2, 7, 0}, sum));
  auto rows = tracker.finish();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].bytes, 30u);
  EXPECT_EQ(rows[0].oldest_ns, 0u);
}

}  // namespace
}  // namespace coretap
