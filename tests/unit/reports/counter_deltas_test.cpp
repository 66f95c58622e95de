// What counters grow by, and which keys are idle; the map itself is the kernel's.
#include "reports/counter_deltas.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

using Reading = CounterDeltas::Reading;

TEST(CounterDeltas, OnlyWhatWasAdded) {
  CounterDeltas deltas;
  EXPECT_EQ(deltas.since_last({{"a", {2, 20}}, {"b", {1, 5}}}),
            (Reading{{"a", {2, 20}}, {"b", {1, 5}}}));
  EXPECT_EQ(deltas.since_last({{"a", {5, 50}}, {"b", {1, 5}}}), (Reading{{"a", {3, 30}}}));
  EXPECT_EQ(deltas.idle(), Words{"b"});
  EXPECT_EQ(deltas.keys(), 2u);
}

TEST(CounterDeltas, ReadingsThatLeftSomeOut) {
  CounterDeltas deltas;
  deltas.since_last({{"a", {5, 50}}});
  Reading now{{"b", {1, 1}}};
  deltas.complete(now);
  EXPECT_EQ(deltas.since_last(now), (Reading{{"b", {1, 1}}}));
  EXPECT_EQ(deltas.since_last({{"a", {6, 60}}, {"b", {1, 1}}}), (Reading{{"a", {1, 10}}}));
}

TEST(CounterDeltas, CountersThatComeLaterThanTheirEvent) {
  CounterDeltas deltas, many(2);
  // One that is made at the moment of reading has no event yet; its first comes after it.
  EXPECT_EQ(deltas.since_last({{"a", {0, 0}}}), Reading{});
  EXPECT_TRUE(deltas.idle().empty());
  EXPECT_EQ(deltas.since_last({{"a", {1, 0}}}), (Reading{{"a", {1, 0}}}));
  EXPECT_EQ(deltas.since_last({{"a", {1, 9}}}), Reading{});
  EXPECT_TRUE(deltas.idle().empty()) << "nine are not shown yet";
  EXPECT_EQ(deltas.since_last({{"a", {2, 12}}}), (Reading{{"a", {1, 12}}}));
  // Two of them count events.
  EXPECT_EQ(many.since_last({{"a", {0, 1, 4}}}), (Reading{{"a", {0, 1, 4}}}));
  EXPECT_EQ(many.since_last({{"a", {0, 2, 6}}}), (Reading{{"a", {0, 1, 2}}}));
}

// Added to between the reading and its end, seen again, and not seen again.
TEST(CounterDeltas, NothingIsLostOfKeysThatGo) {
  for (bool again : {false, true}) {
    CounterDeltas deltas;
    deltas.since_last({{"a", {2, 20}}, {"b", {1, 1}}});
    deltas.since_last({{"a", {2, 20}}, {"b", {1, 1}}});
    ASSERT_EQ(deltas.idle(), (Words{"a", "b"}));
    deltas.gone("a", {3, 29});
    deltas.gone("b", {1, 1});
    EXPECT_EQ(deltas.keys(), 0u);
    Reading now;
    if (again) now["a"] = {4, 40};
    EXPECT_EQ(deltas.since_last(now), again ? (Reading{{"a", {5, 49}}}) : (Reading{{"a", {1, 9}}}));
    if (again) now["a"] = {5, 45};
    EXPECT_EQ(deltas.since_last(now), again ? (Reading{{"a", {1, 5}}}) : Reading{});
  }
}

}  // namespace
}  // namespace coretap
