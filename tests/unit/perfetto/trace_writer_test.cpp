// Traces for Perfetto, read by their wire format.
#include "perfetto/trace_writer.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "text/gzip.hpp"
#include "wire.hpp"

namespace coretap::perfetto {
namespace {

using test::Wire;

struct Written {
  std::string bytes;
  TraceWriter writer{7, [this](std::string_view part) { bytes += part; }};

  std::vector<Wire> packets() {
    writer.flush();
    return Wire(bytes).messages(1);
  }
  std::vector<Wire> with(unsigned member) {
    std::vector<Wire> found;
    for (auto& p : packets())
      if (p.has(member)) found.push_back(p);
    return found;
  }
};

TEST(PerfettoTrace, ClocksAndSystem) {
  Written w;
  w.writer.clocks({.monotonic = 100, .boot = 300, .real = 5000});
  w.writer.system({"Linux", "6.1.0\n", "#1", "x86_64"});
  auto packets = w.packets();
  ASSERT_EQ(packets.size(), 2u);
  for (auto& p : packets) EXPECT_EQ(p.number(10), 7u);
  auto clocks = packets[0].in(6).messages(1);
  ASSERT_EQ(clocks.size(), 3u);
  EXPECT_EQ(clocks[0].number(1), 6u);
  EXPECT_EQ(clocks[0].number(2), 300u);
  EXPECT_EQ(clocks[1].number(1), 3u);
  EXPECT_EQ(clocks[1].number(2), 100u);
  EXPECT_EQ(clocks[2].number(2), 5000u);
  EXPECT_EQ(packets[1].in(45).in(1).text(3), "6.1.0\\x0a") << "made safe";
}

TEST(PerfettoTrace, SwitchesOfACpuInColumns) {
  Written w;
  w.writer.clocks({.monotonic = 0, .boot = 1000, .real = 0});
  auto a = w.writer.name("a"), b = w.writer.name("b");
  w.writer.switches(3, 10, 1, 42, 120, a);
  w.writer.switches(3, 15, 0x100, 43, -1, b);
  w.writer.switches(3, 15, 2, 42, 120, a);
  w.writer.wakes(3, 12, 43, 1, 100, b, kHardInterrupt);
  w.writer.switches(1, 11, 0, 0, 120, b);
  auto bundles = w.with(1);
  ASSERT_EQ(bundles.size(), 2u);
  EXPECT_EQ(bundles[0].in(1).number(1), 1u);
  auto bundle = bundles[1].in(1);
  EXPECT_EQ(bundle.number(1), 3u);
  auto sched = bundle.in(4);
  using Numbers = std::vector<std::uint64_t>;
  EXPECT_EQ(sched.packed(1), (Numbers{1010, 5, 0})) << "boot time, as differences";
  EXPECT_EQ(sched.packed(2), (Numbers{1, 0x100, 2}));
  EXPECT_EQ(sched.packed(3), (Numbers{42, 43, 42}));
  EXPECT_EQ(sched.packed(4), (Numbers{120, UINT64_MAX, 120}));
  EXPECT_EQ(sched.all(5), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(sched.packed(6), (Numbers{0, 1, 0}));
  EXPECT_EQ(sched.packed(7), Numbers{1012});
  EXPECT_EQ(sched.packed(8), Numbers{43});
  EXPECT_EQ(sched.packed(9), Numbers{1});
  EXPECT_EQ(sched.packed(10), Numbers{100});
  EXPECT_EQ(sched.packed(11), Numbers{1});
  EXPECT_EQ(sched.packed(12), Numbers{8});
}

TEST(PerfettoTrace, BundlesAreOfATenthOfASecond) {
  Written w;
  auto a = w.writer.name("a");
  for (std::uint64_t ms = 0; ms < 1000; ms++) w.writer.switches(0, ms * 1'000'000, 0, 1, 120, a);
  EXPECT_EQ(w.with(1).size(), 10u);
}

TEST(PerfettoTrace, CpusThatImportersRefuse) {
  Written w;
  w.writer.switches(1024, 1, 0, 1, 1, w.writer.name("a"));
  EXPECT_TRUE(w.packets().empty());
}

TEST(PerfettoTrace, SlicesNamesAndArrows) {
  Written w;
  const Argument arguments[] = {{"bytes", std::uint64_t{4096}},
                                {"result", std::int64_t{-2}},
                                {"path", std::string_view("a\x1b\xff")}};
  const Track thread{.uuid = 9, .pid = 41, .tid = 42};
  w.writer.slice(thread, 10, 30, {.name = "read", .arguments = arguments, .flow = 5});
  w.writer.instant({.uuid = 8, .name = "disk"}, 20, {.name = "read", .ending_flow = 5});
  auto tracks = w.with(60);
  ASSERT_EQ(tracks.size(), 2u) << "once each";
  EXPECT_EQ(tracks[0].in(60).number(1), 9u);
  EXPECT_EQ(tracks[0].in(60).in(4).number(1), 41u);
  EXPECT_EQ(tracks[0].in(60).in(4).number(2), 42u);
  EXPECT_EQ(tracks[1].in(60).text(2), "disk");
  auto events = w.with(11);
  ASSERT_EQ(events.size(), 3u);
  auto begin = events[0].in(11), end = events[1].in(11), instant = events[2].in(11);
  EXPECT_EQ(events[0].number(8), 10u);
  EXPECT_EQ(events[1].number(8), 30u);
  EXPECT_EQ(begin.number(9), 1u);
  EXPECT_EQ(end.number(9), 2u);
  EXPECT_EQ(instant.number(9), 3u);
  auto names = events[0].in(12).messages(2);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names[0].text(2), "read");
  EXPECT_EQ(begin.number(10), names[0].number(1));
  EXPECT_EQ(instant.number(10), names[0].number(1));
  EXPECT_FALSE(events[2].has(12)) << "the name was told before";
  auto written = begin.messages(4);
  ASSERT_EQ(written.size(), 3u);
  EXPECT_EQ(written[0].number(3), 4096u);
  EXPECT_EQ(static_cast<std::int64_t>(written[1].number(4)), -2);
  auto texts = events[0].in(12).messages(29);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_EQ(texts[0].text(2), "a\\x1b\\xff");
  EXPECT_EQ(written[2].number(17), texts[0].number(1));
  EXPECT_EQ(begin.number(47), 5u);
  EXPECT_EQ(instant.number(48), 5u);
}

TEST(PerfettoTrace, CategoriesAndTypedArguments) {
  Written w;
  const std::string text(1000, 'x');
  const Argument arguments[] = {{"address", Address{0xffff}},
                                {"ratio", 0.5},
                                {"last", true},
                                {"text", std::string_view(text)}};
  for (int i = 0; i < 2; i++)
    w.writer.instant(process_track(7), 1,
                     {.name = "a", .arguments = arguments, .category = "opens"});
  auto events = w.with(11);
  ASSERT_EQ(events.size(), 2u);
  auto categories = events[0].in(12).messages(1);
  ASSERT_EQ(categories.size(), 1u);
  EXPECT_EQ(categories[0].text(2), "opens");
  EXPECT_FALSE(events[1].has(12)) << "all was told before";
  for (auto& e : events) {
    EXPECT_EQ(e.in(11).number(3), categories[0].number(1));
    auto written = e.in(11).messages(4);
    ASSERT_EQ(written.size(), 4u);
    EXPECT_EQ(written[0].number(7), 0xffffu);
    EXPECT_EQ(std::bit_cast<double>(written[1].number(5)), 0.5);
    EXPECT_EQ(written[2].number(2), 1u);
    EXPECT_EQ(written[3].text(6), text) << "long text is not kept";
  }
  EXPECT_EQ(w.with(60)[0].in(60).in(3).number(1), 7u);
}

TEST(PerfettoTrace, CountersHaveUnits) {
  Written w;
  w.writer.count({.uuid = 3, .name = "load", .unit = "tasks"}, 5, 1.5);
  EXPECT_EQ(w.with(60)[0].in(60).in(8).text(6), "tasks");
  auto event = w.with(11)[0].in(11);
  EXPECT_EQ(event.number(9), 4u);
  EXPECT_EQ(std::bit_cast<double>(event.number(44)), 1.5);
}

TEST(PerfettoTrace, APartNeedsNothingOfThePartsBefore) {
  Written w;
  const Track track{.uuid = 1, .name = "t"};
  w.writer.instant(track, 1, {.name = "a"});
  w.writer.begin_part();
  w.bytes.clear();
  w.writer.instant(track, 2, {.name = "a"});
  auto packets = w.packets();
  ASSERT_EQ(packets.size(), 3u);
  EXPECT_EQ(packets[0].number(13), 1u);
  EXPECT_EQ(packets[0].in(59).number(58), 3u);
  EXPECT_TRUE(packets[1].has(60));
  EXPECT_EQ(packets[2].number(13), 2u);
  EXPECT_EQ(packets[2].in(12).messages(2).size(), 1u);
}

TEST(PerfettoTrace, NamesWithoutEndDoNotFillTheMemory) {
  Written w;
  const Track track{.uuid = 1, .name = "t"};
  const std::string text(1 << 16, 'x');
  for (int i = 0; i < 300; i++) w.writer.instant(track, 1, {.name = text + std::to_string(i)});
  std::size_t parts = 0;
  for (auto& p : w.packets()) parts += p.number(13) == 1;
  EXPECT_GE(parts, 2u);
}

TEST(PerfettoTrace, StatesAsTheKernelPrintsThem) {
  EXPECT_EQ(printed_state(0, false), 0u);
  EXPECT_EQ(printed_state(1, true), 0x100u);
  EXPECT_EQ(printed_state(1, false), 1u);
  EXPECT_EQ(printed_state(2, false), 2u);
  EXPECT_EQ(printed_state(0x402, false), 0x80u) << "an idle kernel thread";
  EXPECT_EQ(printed_state(0x80 | 0x20, false), 0x20u) << "a zombie";
  EXPECT_EQ(printed_state(0x80 | 0x10, false), 0x10u);
  EXPECT_EQ(printed_state(0x1000, false), 2u) << "waits for a lock of PREEMPT_RT";
  EXPECT_EQ(printed_state(0x8000, false), 2u) << "frozen";
  EXPECT_EQ(printed_state(0x2001, false), 1u) << "may be frozen";
}

TEST(GzipStream, AsOneFile) {
  for (std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{16384}, std::size_t{300'000}}) {
    std::string text, packed;
    for (std::size_t i = 0; i < size; i++) text += static_cast<char>(i * i >> 3);
    GzipStream stream(Compression::fast);
    for (std::size_t at = 0; at < size; at += 7000)
      EXPECT_TRUE(stream.add(std::string_view(text).substr(at, 7000), packed));
    EXPECT_TRUE(stream.add({}, packed));
    EXPECT_TRUE(stream.finish(packed));
    EXPECT_EQ(gunzip(packed, size), text);
  }
}

}  // namespace
}  // namespace coretap::perfetto
