// slabratetop against the kernel's own trace of a process, and /proc/slabinfo.
#include <map>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

using Counts = std::map<std::string, std::uint64_t>;

/// "name=filp": the text behind `key` up to a blank.
std::string value_of(const std::string& line, const std::string& key) {
  auto at = line.find(key);
  if (at == std::string::npos) return {};
  at += key.size();
  return line.substr(at, line.find(' ', at) - at);
}

Counts objects(const Report& report, bool kmalloc) {
  Counts counts;
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

Counts traced(const Trace& trace, pid_t pid, const std::string& key, bool sizes) {
  Counts counts;
  for (auto& line : trace.lines(pid))
    if (auto value = value_of(line, key); !value.empty())
      counts[sizes ? kmalloc_name(std::stoull(value)) : value]++;
  return counts;
}

// A workload that is held allocates nothing: both see the same.
TOOL_TEST(Slabratetop, WhatTheKernelsOwnTraceHas) {
  require_tool("slabratetop");
  Workload workload("opener", {"--count", "40"}, kLinger);
  Trace caches("kmem/kmem_cache_alloc"), sizes("kmem/kmalloc");
  Tracer tracer("slabratetop", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  workload.truth();
  if (!await_sleep(workload.pid())) throw std::runtime_error("gone");
  auto report = tracer.stop();
  caches.stop();
  sizes.stop();
  auto by_name = traced(caches, workload.pid(), " name=", false);
  auto by_size = traced(sizes, workload.pid(), " bytes_alloc=", true);
  auto named = objects(report, false), sized = objects(report, true);
  workload.end_lingering();
  if (by_name.empty()) {  // before 6.1 the trace has no names
    std::uint64_t all = 0;
    for (auto& [cache, n] : named) all += n;
    EXPECT_EQ(all, caches.lines(workload.pid()).size());
  } else {
    EXPECT_EQ(named, by_name);
  }
  EXPECT_EQ(sized, by_size);
  EXPECT_GE(named["filp"], 40u);
}

TOOL_TEST(Slabratetop, SizesOfObjects) {
  require_tool("slabratetop");
  std::map<std::string, std::uint64_t> object_bytes;
  std::istringstream slabs(slurp("/proc/slabinfo"));
  for (std::string line; std::getline(slabs, line);) {
    std::istringstream cells(line);
    std::string name;
    std::uint64_t active = 0, all = 0, bytes = 0;
    if (cells >> name >> active >> all >> bytes) object_bytes[name] = bytes;
  }
  if (object_bytes.empty()) throw Skip("no /proc/slabinfo");
  Workload workload("runner", {"--count", "20"}, kLinger);
  Tracer tracer("slabratetop", {"--json"});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  std::size_t known = 0;
  for (auto& row : report.body) {
    if (row["cache"].is_null()) continue;  // first seen when tracing had ended already
    auto found = object_bytes.find(row["cache"].str());
    if (found == object_bytes.end()) continue;
    known++;
    EXPECT_EQ(row["bytes"].u64(), row["allocs"].u64() * found->second) << found->first;
  }
  EXPECT_GE(known, 10u);
  // All but merged caches have their own names there.
  EXPECT_GE(known * 2, report.body.size());
}

TOOL_TEST(Slabratetop, BlocksHaveTheKnownColumns) {
  require_tool("slabratetop");
  auto text = run({tool_path("slabratetop"), "-C", "-r", "3", "-s", "size", "0.2", "2"});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find(" loadavg: "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("CACHE                              ALLOCS      BYTES\n"),
            std::string::npos)
      << text.out;
  EXPECT_EQ(run({tool_path("slabratetop"), "-s", "nothing"}).status, 2);
}

const DeclareTests kSlabratetop{{
    .name = "slabratetop",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "opener --count 100"},
    .stress = {.workload = "opener --count {n}",
               .events = 5000,
               .shown =
                   [](const Json& line) {
                     return line["cache"].str() == "filp" ? line["allocs"].u64() : 0;
                   },
               .truth = "bulk",
               .slack = 100},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
