#include <algorithm>
#include <set>

#include "all_tools.hpp"
#include "compare/comparison.hpp"
#include "coretap/report_kind.hpp"
#include "expect.hpp"

namespace coretap::compare {

namespace {

std::string line(int second, std::string_view keys, std::string_view slots) {
  return fmt::format(
      R"({{"type":"histogram","tool":"biolatency","time":"2026-11-29T04:{:02}:{:02}.500000+00:00",{})"
      R"("count":3,"total_ns":9000,"histogram":[{}]}})"
      "\n",
      second / 60, second % 60, keys, slots);
}

constexpr std::string_view kSlots =
    R"({"from_ns":0,"below_ns":2000,"count":1},{"from_ns":4000,"below_ns":8000,"count":2})";

TEST(CompareLines, HistogramsOfIntervals) {
  std::string text = R"({"type":"header","tool":"biolatency","version":"0.1.0","kernel":"6.18.44"})"
                     "\n";
  for (int i : {0, 1, 2, 3, 6, 7}) {
    text += line(i, R"("disk":"vda","flags":null,)", kSlots);
    if (i == 2) text += line(i, R"("disk":"vdb",)", kSlots);
  }
  text += R"({"type":"ledger","seen":30,"shown":21,"filtered":4,"lost":5})"
          "\n";
  auto s = series_of_lines(text, "f");
  ASSERT_TRUE(s) << s.error().what;
  EXPECT_EQ(s->facts.name, "biolatency");
  EXPECT_EQ(s->facts.kernel, "6.18.44");
  EXPECT_EQ(s->facts.lost, 5);
  EXPECT_EQ(s->facts.kept, 21);
  EXPECT_EQ(s->intervals.size(), 8);  // two without events
  EXPECT_NEAR(s->seconds(), 8, 1e-6);
  EXPECT_TRUE(s->intervals[4].histograms.empty());
  ASSERT_EQ(s->intervals[2].histograms.size(), 2);
  ASSERT_EQ(s->names.size(), 2);
  EXPECT_EQ(s->names[1].key, "disk=vdb");
  EXPECT_EQ(s->buckets.scale.step, 1000);
  EXPECT_FALSE(s->buckets.scale.linear);
  auto& h = s->intervals[0].histograms[0].second;
  EXPECT_EQ(h.total, 9000);
  using Counts = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
  EXPECT_EQ(h.counts, (Counts{{0, 1}, {2, 2}}));
}

TEST(CompareLines, TheFirstIntervalBeginsWithTheRun) {
  auto intervals_and_seconds = [](std::string_view time, std::initializer_list<int> seconds) {
    auto text =
        fmt::format(R"({{"type":"header","tool":"biolatency","time":"2026-11-29T{}"}})", time);
    for (auto second : seconds) text += "\n" + line(second, "", kSlots);
    auto s = series_of_lines(text, "f");
    return s ? fmt::format("{} {:.3f}", s->intervals.size(), s->seconds()) : s.error().what;
  };
  EXPECT_EQ(intervals_and_seconds("04:00:01.500000+00:00", {6}), "1 5.000");
  EXPECT_EQ(intervals_and_seconds("04:00:01.800000+00:00", {3, 4, 5}), "3 3.700");
  EXPECT_EQ(intervals_and_seconds("04:00:01.500000+00:00", {4, 5, 6}), "3 5.000");
  EXPECT_EQ(intervals_and_seconds("03:00:01.500000+00:00", {4, 5, 6}), "3 3.000") << "a dump";
}

TEST(CompareLines, StepsFromBounds) {
  auto step = [](const std::string& slots) {
    auto s = series_of_lines(line(1, "", slots), "f");
    if (!s) return s.error().what;
    return fmt::format("{}{}", s->buckets.scale.step, s->buckets.scale.linear ? " linear" : "");
  };
  auto slot = [](std::uint64_t from, std::uint64_t below) {
    return fmt::format(R"({{"from_ns":{},"below_ns":{},"count":1}})", from, below);
  };
  EXPECT_EQ(step(slot(4000, 8000)), "1000");
  EXPECT_EQ(step(slot(4'000'000, 8'000'000)), "1000000");
  EXPECT_EQ(step(slot(4, 8)), "1");
  EXPECT_EQ(step(slot(0, 2048) + ',' + slot(4096, 8192)), "1024");
  EXPECT_EQ(step(slot(0, 1) + ',' + slot(1, 2) + ',' + slot(5, 6)), "1 linear");
  EXPECT_TRUE(says(step(slot(3000, 6000) + ',' + slot(4000, 8000)), "unknown bounds"));
}

/// Lines of 20 seconds.
std::string each_second(const std::string& line) {
  std::string text;
  for (int i = 0; i < 20; i++)
    text += fmt::format(fmt::runtime(line), fmt::format("2026-11-29T04:00:{:02}.000000+00:00", i));
  return text;
}

std::set<std::string> names_in(const Series& s) {
  std::set<std::string> all;
  for (auto& interval : s.intervals)
    for (auto& [name, n] : interval.counts)
      all.insert(fmt::format("{} {} {}", s.names[name].what, s.names[name].key, n));
  return all;
}

TEST(CompareLines, ToolsSayWhatTheirValuesMean) {
  // The longest state is no label, and the number of threads no sum.
  auto s = series_of_lines(
      each_second(R"({{"type":"account","tool":"walltime","time":"{}","pid":7,"comm":"sh",)"
                  R"("threads":3,"time_ns":3000,"cpu_ns":1000,"cpu_count":5,"longest_ns":9,)"
                  R"("longest_state":"wait.futex"}})"
                  "\n"),
      "f");
  ASSERT_TRUE(s) << s.error().what;
  EXPECT_EQ(names_in(*s), (std::set<std::string>{"time_ns comm=sh 3000", "cpu_ns comm=sh 1000",
                                                 "cpu_count comm=sh 5"}));
  EXPECT_EQ(s->means.at("cpu_ns"), "cpu_count");
  EXPECT_EQ(s->intervals.size(), 20u);
}

TEST(CompareLines, WakersAndReasonsAreFrames) {
  auto s = series_of_lines(
      each_second(
          R"({{"type":"report","tool":"offwaketime","time":"{}"}})"
          "\n"
          R"({{"type":"stack","tool":"offwaketime","comm":"sh","reason":"pipe","kernel_stack":["b","a"],)"
          R"("user_stack":[],"wakers":[{{"comm":"cat","kernel_stack":["w"],"user_stack":["u"]}}],)"
          R"("total_ns":100,"count":2}})"
          "\n"),
      "f");
  ASSERT_TRUE(s) << s.error().what;
  EXPECT_EQ(s->whole, "time_ns");
  auto all = names_in(*s);
  EXPECT_TRUE(all.contains("stack stack=sh;a;b;[pipe];woken by cat;u;w 100")) << *all.begin();
  EXPECT_TRUE(all.contains("total function=woken by cat 100"));
  EXPECT_TRUE(all.contains("self function=w 100"));
}

TEST(CompareLines, StacksOfWalltimeReplaceItsRows) {
  auto s = series_of_lines(
      each_second(R"({{"type":"account","tool":"walltime","time":"{}","comm":"sh","time_ns":30}})"
                  "\n"
                  R"({{"type":"stack","tool":"walltime","comm":"sh","pid":7,"state":"wait.futex",)"
                  R"("kernel_stack":["k"],"user_stack":["u"],"total_ns":20,"count":2}})"
                  "\n"),
      "f");
  ASSERT_TRUE(s) << s.error().what;
  auto all = names_in(*s);
  EXPECT_TRUE(all.contains("stack stack=sh;u;k;[wait.futex] 20"));
  EXPECT_TRUE(all.contains("time_ns  20")) << "the whole";
  for (auto& name : all) EXPECT_FALSE(says(name, "comm=")) << name;
}

// A new tool needs no rule here: its fields say what they are.
TEST(CompareLines, EachReportDeclaresWhatItSums) {
  std::size_t durations = 0;
  for (auto& tool : all_tools())
    for (auto& report : reports_of(tool)) {
      if (!report->can_be_recorded()) continue;
      for (auto& kind : report->json()) {
        SCOPED_TRACE(std::string(tool.name) + " " + kind.type);
        std::size_t sums = 0, of_event = 0;
        for (auto& k : kind.keys) {
          sums += k.meaning == Meaning::sum;
          of_event += k.meaning == Meaning::duration;
          if (k.meaning == Meaning::sum) {
            EXPECT_TRUE(k.type.starts_with("integer")) << k.name;
          }
          if (!k.sums.empty()) {
            EXPECT_EQ(std::ranges::count(kind.keys, k.sums, &OutputKey::name), 1) << k.name;
          }
        }
        if (kind.type == "row" || kind.type == "interval") {
          EXPECT_GT(sums, 0u);
        }
        EXPECT_LE(of_event, 1u);
        durations += of_event;
      }
    }
  EXPECT_GE(durations, 25u);
}

TEST(CompareLines, FilesOfAnyContent) {
  auto why = [](std::string_view text) {
    auto s = series_of_lines(text, "f\x1b");
    return s ? std::string("?") : s.error().what;
  };
  EXPECT_EQ(why(""), "f\\x1b has nothing that can be compared by intervals");
  EXPECT_EQ(why("usecs : count\n"), "f\\x1b is not a file of JSON lines");
  EXPECT_EQ(why("[[[[\n"), "f\\x1b is not a file of JSON lines");
  EXPECT_EQ(why(R"({"type":"event"})"
                "\n"),
            "f\\x1b has nothing that can be compared by intervals");
  EXPECT_TRUE(
      says(why(line(1, "", R"(1,{"from_ns":5,"below_ns":1,"count":2})")), "unknown bounds"));
  EXPECT_FALSE(read_series("/nonexistent"));
}

}  // namespace

}  // namespace coretap::compare
