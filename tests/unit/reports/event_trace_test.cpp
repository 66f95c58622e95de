// Slices of one track: which fit beside and around each other.
#include "reports/event_trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace coretap {
namespace {

TEST(SliceNest, SlicesBesideAndAroundOthers) {
  SliceNest nest;
  EXPECT_TRUE(nest.take(10, 20));
  EXPECT_TRUE(nest.take(20, 30)) << "the first one has ended";
  EXPECT_FALSE(nest.take(25, 40)) << "begins in another";
  EXPECT_TRUE(nest.take(5, 40)) << "around both";
  EXPECT_FALSE(nest.take(5, 50)) << "which one begins first is not known";
  EXPECT_FALSE(nest.take(6, 39));
  EXPECT_TRUE(nest.take(4, 40)) << "ends are alike";
  EXPECT_TRUE(nest.take(40, 41));
  EXPECT_FALSE(SliceNest(100).take(99, 200));
  EXPECT_TRUE(SliceNest(100).take(100, 200));
}

struct Slice {
  std::uint64_t begin, end;
};

/// As importers sort them: by time, then in the order of the file. True: each end is that of the
/// slice that began last.
bool nests(const std::vector<Slice>& slices) {
  struct Edge {
    std::uint64_t time;
    std::size_t slice;
    bool begins;
  };
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < slices.size(); i++) {
    edges.push_back({slices[i].begin, i, true});
    edges.push_back({slices[i].end, i, false});
  }
  std::stable_sort(edges.begin(), edges.end(), [](auto& a, auto& b) { return a.time < b.time; });
  std::vector<std::size_t> open;
  for (auto& e : edges) {
    if (e.begins) {
      open.push_back(e.slice);
      continue;
    }
    // Slices that end at the same time may be ended in any order.
    if (open.empty() || slices[open.back()].end != e.time) return false;
    open.pop_back();
  }
  return open.empty();
}

TEST(SliceNest, WhatItTakesNestsForImporters) {
  std::mt19937 random(7);
  std::size_t taken = 0;
  for (int round = 0; round < 2000; round++) {
    SliceNest nest;
    std::vector<Slice> all;
    std::uint64_t now = 100;
    for (int i = 0; i < 200; i++) {
      now += random() % 3;
      const auto jitter = random() % 8 == 0 ? random() % 3 : 0;  // records of two CPUs
      const auto end = now - jitter, begin = end - random() % (i % 7 ? 4 : 60);
      if (begin < end && nest.take(begin, end)) all.push_back({begin, end});
    }
    taken += all.size();
    ASSERT_TRUE(nests(all)) << round;
  }
  EXPECT_GT(taken, 50'000u);
}

}  // namespace
}  // namespace coretap
