// What counters grow by, and which keys are idle; the map itself is the kernel's.
#include "reports/counter_deltas.hpp"

#include <gtest/gtest.h>

namespace coretap {
namespace {

using Reading = Growth::Reading;
using Keys = std::vector<std::string>;

TEST(Growth, OnlyWhatWasAdded) {
  Growth growth;
  EXPECT_EQ(growth.since_last({{"a", {2, 20}}, {"b", {1, 5}}}),
            (Reading{{"a", {2, 20}}, {"b", {1, 5}}}));
  EXPECT_EQ(growth.since_last({{"a", {5, 50}}, {"b", {1, 5}}}), (Reading{{"a", {3, 30}}}));
  EXPECT_EQ(growth.idle(), Keys{"b"});
  EXPECT_EQ(growth.keys(), 2u);
}

// One that is made at the moment of reading has no event yet; its first comes after it.
TEST(Growth, WhatIsNewIsNotIdle) {
  Growth growth;
  EXPECT_EQ(growth.since_last({{"a", {0, 0}}}), Reading{});
  EXPECT_TRUE(growth.idle().empty());
  EXPECT_EQ(growth.since_last({{"a", {1, 7}}}), (Reading{{"a", {1, 7}}}));
}

TEST(Growth, CountersThatComeLaterThanTheirEvent) {
  Growth growth;
  EXPECT_EQ(growth.since_last({{"a", {1, 0}}}), (Reading{{"a", {1, 0}}}));
  EXPECT_EQ(growth.since_last({{"a", {1, 9}}}), Reading{});
  EXPECT_TRUE(growth.idle().empty()) << "nine are not shown yet";
  EXPECT_EQ(growth.since_last({{"a", {2, 12}}}), (Reading{{"a", {1, 12}}}));
}

TEST(Growth, WhatCountsEventsMayBeMany) {
  Growth growth(2);
  EXPECT_EQ(growth.since_last({{"a", {0, 1, 4}}}), (Reading{{"a", {0, 1, 4}}}));
  EXPECT_EQ(growth.since_last({{"a", {0, 2, 6}}}), (Reading{{"a", {0, 1, 2}}}));
}

// Added to between the reading and its end, seen again, and not seen again.
TEST(Growth, NothingIsLostOfKeysThatGo) {
  for (bool again : {false, true}) {
    Growth growth;
    growth.since_last({{"a", {2, 20}}, {"b", {1, 1}}});
    growth.since_last({{"a", {2, 20}}, {"b", {1, 1}}});
    ASSERT_EQ(growth.idle(), (Keys{"a", "b"}));
    growth.gone("a", {3, 29});
    growth.gone("b", {1, 1});
    EXPECT_EQ(growth.keys(), 0u);
    Reading now;
    if (again) now["a"] = {4, 40};
    EXPECT_EQ(growth.since_last(now), again ? (Reading{{"a", {5, 49}}}) : (Reading{{"a", {1, 9}}}));
    if (again) now["a"] = {5, 45};
    EXPECT_EQ(growth.since_last(now), again ? (Reading{{"a", {1, 5}}}) : Reading{});
  }
}

}  // namespace
}  // namespace coretap
