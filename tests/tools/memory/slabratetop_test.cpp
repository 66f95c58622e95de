// slabratetop against the kernel's own trace of a process, and /proc/slabinfo.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

using CountOf = std::map<std::string, std::uint64_t>;

CountOf objects(const Report& report, bool kmalloc) {
  CountOf counts;
  for (auto& row : report.body) {
    auto cache = row["cache"].str();
    if ((cache.starts_with("kmalloc-") || cache.starts_with("[pages ")) == kmalloc)
      counts[cache] += row["allocs"].u64();
  }
  return counts;
}

std::string kmalloc_name(std::uint64_t bytes) {
  auto kilo = std::to_string(bytes >> 10) + "k";
  return bytes > 8192   ? "[pages " + kilo + "]"
         : bytes % 1024 ? "kmalloc-" + std::to_string(bytes)
                        : "kmalloc-" + kilo;
}

// A held workload allocates nothing: both see the same.
TOOL_TEST(Slabratetop, WhatTheKernelsOwnTraceHas) {
  Workload workload("opener", "--count 40", kLinger);
  Trace caches("kmem/kmem_cache_alloc"), sizes("kmem/kmalloc");
  Tracer tracer("slabratetop", "--json --strict -p " + workload.id());
  workload.release();
  workload.truth();
  if (!await_sleep(workload.pid())) throw std::runtime_error("gone");
  auto report = tracer.stop();
  caches.stop();
  sizes.stop();
  CountOf by_name, by_size;
  for (auto& event : caches.events(workload.pid()))
    if (auto name = event.value(" name"); !name.empty()) by_name[name]++;
  for (auto& event : sizes.events(workload.pid()))
    if (auto bytes = event.value(" bytes_alloc"); !bytes.empty())
      by_size[kmalloc_name(std::stoull(bytes))]++;
  auto named = objects(report, false), sized = objects(report, true);
  if (by_name.empty()) {  // before 6.1 the trace has no names
    std::uint64_t all = 0;
    for (auto& [cache, n] : named) all += n;
    EXPECT_EQ(all, caches.events(workload.pid()).size());
  } else {
    EXPECT_EQ(named, by_name);
  }
  EXPECT_EQ(sized, by_size);
  EXPECT_GE(named["filp"], 40u);
}

TOOL_TEST(Slabratetop, SizesOfObjects) {
  auto object_bytes = slab_object_bytes();
  if (object_bytes.empty()) throw Skip("no /proc/slabinfo");
  auto rows = observe("slabratetop --json", "runner --count 20").report().body;
  std::size_t known = 0;
  for (auto& row : rows) {
    if (row["cache"].is_null()) continue;  // first seen after tracing had ended
    auto found = object_bytes.find(row["cache"].str());
    if (found == object_bytes.end()) continue;
    known++;
    expect_fields(row, {{"bytes", row["allocs"].u64() * found->second}});
  }
  EXPECT_GE(known, 10u);
  // All except merged caches have their own names there.
  EXPECT_GE(known * 2, rows.size());
}

TOOL_TEST(Slabratetop, BlocksHaveTheKnownColumns) {
  expect_contains(output_of("slabratetop -C -r 3 -s size 0.2 2"),
                  {" loadavg: ", "CACHE                              ALLOCS      BYTES\n"});
}

TESTS_OF(slabratetop, .events = {{}, "opener --count 100"},
         .stress = total_row(
                       "opener --count {n}", 5000,
                       [](const Json& line) {
                         return line["cache"].str() == "filp" ? line["allocs"].u64() : 0;
                       },
                       "bulk")
                       .with_slack(100),
         .long_run = {{.arguments = "10"}});

}  // namespace
}  // namespace coretap::tooltest
