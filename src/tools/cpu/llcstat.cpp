// llcstat: references to the last-level cache and misses, by process and CPU.
#include "cpu/llcstat.h"

#include <fmt/format.h>

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "llcstat.skel.h"

using namespace coretap;
using Counts = llcstat_counts;
using Line = Row<llcstat_key, Counts>;

namespace {

/// Nothing if the samples have more misses than references.
Value hit_ratio(const Counts& c) {
  if (!c.references || c.misses > c.references) return {};
  return static_cast<double>(c.references - c.misses) / static_cast<double>(c.references);
}

std::string total(const Counts& c) {
  auto ratio = hit_ratio(c);
  auto* known = std::get_if<double>(&ratio);
  return fmt::format("Total References: {} Total Misses: {} Hit Rate: {}", c.references, c.misses,
                     known ? fmt::format("{:.2f}%", *known * 100) : "-");
}

template <auto Part, auto Member>
Field of(std::string_view key, std::string_view title, Format format, int width,
         std::string_view doc) {
  return derived<Line, [](const Line& l) { return detail::to_value(l.*Part.*Member); }>(
      key, title, as::wide(format, width), doc);
}
constexpr auto kKey = &Line::key;
constexpr auto kValue = &Line::value;

}  // namespace

TOOL(llcstat) {
  return {
      .name = "llcstat",
      .summary = "last-level cache references, misses and hit ratio by process",
      .description =
          "References to the CPU's last-level cache, and misses, by process and CPU. The CPU "
          "counts them. Each time it has counted a period of either event, the running task is "
          "sampled; a sample counts as one period of events.\n\n"
          "The events are perf's cache-references and cache-misses; which cache they refer to "
          "depends on the CPU. The two are sampled separately: a task with few samples may have "
          "more misses than references, and then has no ratio.",
      .overhead = "an interrupt per period of either event: high at 100, low at 10000 (-c)",
      .examples = {{"llcstat 10", "all processes for ten seconds"},
                   {"llcstat -c 10000 -t -p 181", "by thread of process 181, with less overhead"}},
      .questions = {{"Which process misses the last-level cache?", "llcstat -c 10000 10"}},
      .differs = {{Difference::libbpf_tools,
                   "Where the machine has no such counters the exit status is 3. There it is "
                   "0."}},
      .object = skeleton<llcstat_bpf>(),
      .positionals = {shared::duration_argument("10")},
      .options = {flag('t', "tids", "by thread rather than by process",
                       setting(&rodata_of<llcstat_bpf>::by_tid)),
                  shared::sample_period('c', "events per sample (default: 100)",
                                        kLeastHardwarePeriod),
                  shared::top(), shared::sort(0), shared::pid(), shared::uid(), shared::comm(),
                  shared::cgroup(0), shared::max_keys()},
      .hooks = {{.name = "last-level cache",
                 .candidates = {{{progs::on_reference, progs::on_miss}}},
                 .sampling = every(kLeastHardwarePeriod),
                 .instead = "run it on the host, or give the virtual machine a virtual PMU"}},
      .report =
          table<llcstat_key, Counts>(
              maps::counts,
              {who<&Line::key>(id::pid.columns(-8), id::tid.with({}).columns(-8).only("tids"),
                               id::comm.titled("NAME")),
               of<kKey, &llcstat_key::cpu>("cpu", "CPU", as::number, -4, "CPU that it ran on")
                   .key_part(),
               of<kValue, &Counts::references>("references", "REFERENCE", as::number, 12,
                                               "references")
                   .counter(),
               of<kValue, &Counts::misses>("misses", "MISS", as::number, 12, "misses").counter(),
               derived<Line, [](const Line& l) { return hit_ratio(l.value); }>(
                   "hit_ratio", "HIT%", as::wide(as::percent, 7),
                   "references that were not misses, 0 to 1")},
              "references,misses")
              .with_total<Counts, total>(),
      .announce = "Sampling the last-level cache",
  };
}
