#include "tools/syscall/traceloop/recorder.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

/// Writes as bpf/syscall/record.bpf.h does.
struct Writer {
  static constexpr std::uint32_t kSlots = 16;
  std::vector<record_slot> slots{kSlots};
  record_head head{};

  record_slot& slot(std::uint64_t at) { return slots[at % kSlots]; }

  void call(std::uint64_t start, unsigned texts = 0) {
    auto& first = slot(head.next);
    first = {};
    first.kind = RECORD_CALL;
    first.call.start_ns = start;
    first.bytes = static_cast<std::uint32_t>(head.calls++);
    first.slots = static_cast<std::uint8_t>(1 + texts);
    first.seq = head.next + 1;
    for (unsigned i = 1; i <= texts; i++) {
      auto& text = slot(head.next + i);
      text = {};
      text.kind = RECORD_TEXT;
      text.seq = head.next + i + 1;
    }
    head.next += 1 + texts;
  }
};

Numbers starts(RecordSegment& segment) {
  Numbers all;
  segment.read([&](auto& record) { all.push_back(record[0].call.start_ns); });
  return all;
}

struct Segment : testing::Test {
  Writer writer;
  RecordSegment segment{writer.slots.data(), Writer::kSlots, &writer.head};
};

TEST_F(Segment, WhatIsNewEachTime) {
  EXPECT_EQ(starts(segment), Numbers());
  writer.call(1);
  writer.call(2, 3);
  writer.call(3);
  EXPECT_EQ(starts(segment), (Numbers{1, 2, 3}));
  EXPECT_EQ(starts(segment), Numbers());
  writer.call(4);
  EXPECT_EQ(starts(segment), (Numbers{4}));
  EXPECT_EQ(segment.overwritten(), 0u);
}

TEST_F(Segment, OverwrittenOnesAreCounted) {
  for (std::uint64_t i = 0; i < 100; i++) writer.call(i);
  auto seen = starts(segment);
  ASSERT_EQ(seen.size(), Writer::kSlots);
  EXPECT_EQ(seen.front(), 100 - Writer::kSlots);
  EXPECT_EQ(segment.overwritten(), 100 - Writer::kSlots);
  // The first of what is left are texts whose call is gone.
  for (std::uint64_t i = 0; i < 10; i++) writer.call(i, 2);
  seen = starts(segment);
  EXPECT_EQ(seen, (Numbers{5, 6, 7, 8, 9}));
  EXPECT_EQ(segment.overwritten(), 100 - Writer::kSlots + 5);
}

TEST_F(Segment, WhatIsBeingWrittenIsLeftOut) {
  for (std::uint64_t i = 0; i < 4; i++) writer.call(i, 1);
  writer.slot(2).seq = 0;      // a call
  writer.slot(5).seq = 99999;  // a text of the next one
  EXPECT_EQ(starts(segment), (Numbers{0, 3}));
  EXPECT_EQ(segment.overwritten(), 2u);
}

TEST_F(Segment, NonsenseEndsNowhere) {
  writer.call(1);
  writer.slot(0).slots = 0;
  writer.call(2);
  writer.slot(1).slots = 255;
  EXPECT_EQ(starts(segment), (Numbers{1}));
}

// Numbers of calls have 32 bits in a slot.
TEST_F(Segment, NumbersGoOn) {
  writer.head.calls = 0xfffffffe;
  for (std::uint64_t i = 0; i < 4; i++) writer.call(i);
  EXPECT_EQ(starts(segment).size(), 4u);
  EXPECT_EQ(segment.overwritten(), 0xfffffffeu);
  writer.call(4);
  EXPECT_EQ(starts(segment).size(), 1u);
  EXPECT_EQ(segment.overwritten(), 0xfffffffeu);
}

}  // namespace
}  // namespace coretap
