#include "text/ledger.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

Ledger example() {
  Ledger l;
  l.shown = 100;
  for (auto [cause, count] : {std::pair{LEDGER_FILTERED, 20},
                              {LEDGER_LOST, 3},
                              {LEDGER_UNTRACKED, 4},
                              {LEDGER_UNMATCHED, 5},
                              {LEDGER_TRUNCATED, 6},
                              {LEDGER_STACK_FAILED, 7},
                              {LEDGER_OVERWRITTEN, 10},
                              {LEDGER_UNJUDGED, 8}})
    l.count[cause] = static_cast<std::uint64_t>(count);
  l.user_stack("no mapping", 0, 3);
  l.user_stack("exiting", 2, 6);
  l.user_stack("", 1, 5);
  return l;
}

TEST(Ledger, SeenIsWhatIsShownAndWhatIsNot) {
  // Truncated events and those without their stack are shown: not counted twice.
  EXPECT_EQ(example().seen(), 150u);
  EXPECT_EQ(Ledger().seen(), 0u);
}

TEST(Ledger, WhatIsFilteredMarkedOrForgottenIsNotLost) {
  Ledger l;
  EXPECT_FALSE(l.data_lost());
  l.shown = 1;
  const std::set<int> forgiven = {LEDGER_FILTERED, LEDGER_STACK_CUT, LEDGER_STACK_GUESSED,
                                  LEDGER_OVERWRITTEN};
  for (int cause : forgiven) l.count[cause] = 1'000'000;
  EXPECT_FALSE(l.data_lost());
  for (int cause = 0; cause < LEDGER_CAUSES; cause++) {
    if (forgiven.contains(cause)) continue;
    Ledger other;
    other.count[cause] = 1;
    EXPECT_TRUE(other.data_lost()) << cause;
  }
}

TEST(Ledger, WhatIsLimitedWasSeen) {
  auto l = example();
  l.limited = 1000;
  EXPECT_EQ(l.seen(), 1150u);
  Ledger only;
  only.shown = 3;
  only.limited = 4;
  EXPECT_FALSE(only.data_lost());
  EXPECT_EQ(only.text(false),
            "events: 7 seen, 3 shown\n             4  limited: above --max-rate\n");
  EXPECT_EQ(only.losses(), Words{"4 events limited: above --max-rate"});
}

TEST(Ledger, TextTellsEachCauseThatCounted) {
  Ledger l;
  l.shown = 5;
  EXPECT_EQ(l.text(false), "") << "silent without causes";
  EXPECT_EQ(l.text(true), "events: 5 seen, 5 shown\n");
  l.count[LEDGER_LOST] = 2;
  auto text = l.text(false);
  EXPECT_TRUE(text.starts_with("events: 7 seen, 5 shown\n")) << text;
  EXPECT_TRUE(says(text, "           2  lost", "--ring-size"));
  EXPECT_EQ(count_of(text, "\n"), 2u) << text;
  EXPECT_EQ(text.back(), '\n');
  auto all = example().text(false);
  EXPECT_EQ(count_of(all, "\n"), std::size_t{LEDGER_CAUSES}) << all;
  EXPECT_TRUE(
      says(all, "           9  shown with a truncated user stack: 6 exiting, 3 no mapping\n"));
}

TEST(Ledger, LossesInWords) {
  Ledger l;
  l.shown = 5;
  l.count[LEDGER_FILTERED] = 9;
  EXPECT_TRUE(l.losses().empty()) << "what was excluded is none";
  l.count[LEDGER_LOST] = 2;
  l.count[LEDGER_UNMATCHED] = 1;
  EXPECT_EQ(l.losses(), (Words{"2 events lost: ring buffer full (raise --ring-size)",
                               "1 event unmatched: start or end not seen"}));
}

TEST(Ledger, JsonHasEveryCause) {
  JsonLine line("ledger", "runqlat");
  example().json(line);
  auto d = parsed_json(line.finish());
  EXPECT_EQ(members(d, "type tool seen shown filtered lost untracked unmatched truncated"),
            R"("ledger" "runqlat" 150 100 20 3 4 5 6)");
  EXPECT_EQ(members(d, "stacks_failed stacks_truncated stacks_guessed overwritten limited"),
            "7 9 11 10 0");
  EXPECT_EQ(d["stacks_truncated_by"]["exiting"].GetUint64(), 6u);
  EXPECT_EQ(d["stacks_truncated_by"].MemberCount(), 2u);
  EXPECT_TRUE(d["data_lost"].GetBool());
  EXPECT_EQ(d.MemberCount(), 8u + LEDGER_CAUSES);
}

}  // namespace
}  // namespace coretap
