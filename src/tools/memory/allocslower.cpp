// allocslower: page allocations that take long, and what they wait for.
#include "memory/allocslower.h"

#include <algorithm>

#include <fmt/format.h>

#include "allocslower.skel.h"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Event = allocslower_event;
using Parts = allocslower_parts;
using Opt = rodata_of<allocslower_bpf>;

namespace {

constexpr std::string_view kKinds[] = {"kswapd", "compact-async", "compact-sync", "reclaim", "oom"};
static_assert(std::size(kKinds) == ALLOC_KINDS);
constexpr std::string_view kResults[] = {"without success", "success", "complete",
                                         "partial_skipped", "contended"};
static_assert(std::size(kResults) == ALLOC_RESULTS);

std::string step(const allocslower_step& s) {
  auto text = s.kind < ALLOC_KINDS ? std::string(kKinds[s.kind]) : std::to_string(s.kind);
  const double ms = static_cast<double>(s.ns) / kMillisecond;
  switch (s.kind) {
    case ALLOC_KSWAPD:
      return s.times > 1 ? fmt::format("{} x{}", text, s.times) : text;
    case ALLOC_ASYNC:
    case ALLOC_SYNC:
      return fmt::format("{} {:.2f} ms {}", text, ms, kResults[s.result % ALLOC_RESULTS]);
    case ALLOC_RECLAIM:
      return fmt::format("{} {:.2f} ms {} pages", text, ms, s.pages);
    default:
      return text;
  }
}

TextList steps(const Event& e) {
  auto& parts = e.parts;
  TextList all;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(parts.steps, ALLOC_STEPS); i++) {
    all.each.push_back(step(parts.step[i]));
    all.line += (i ? ", " : "") + all.each.back();
  }
  if (parts.steps > ALLOC_STEPS) all.line += fmt::format(", {} more", parts.steps - ALLOC_STEPS);
  return all;
}

template <auto Part>
std::uint64_t part(const Event& e) {
  return e.parts.*Part;
}
std::uint64_t retries(const Event& e) { return e.parts.reclaims ? e.parts.reclaims - 1 : 0; }
bool failed(const Event& e) { return e.failed; }

template <auto Part>
Field time_field(std::string_view key, std::string_view title, std::string_view doc) {
  return derived<Event, part<Part>>(key, title, as::wide(as::milliseconds, 11), doc);
}
template <auto Part>
Field count_field(std::string_view key, std::string_view title, std::string_view doc) {
  return derived<Event, part<Part>>(key, title, as::pages, doc);
}

}  // namespace

TOOL(allocslower) {
  return {
      .name = "allocslower",
      .summary = "page allocations that take long, and what they wait for",
      .description =
          "One line per page allocation that finds no free page and then takes at least MIN_MS "
          "milliseconds: the time from the first step of the kernel's slow path to the end of the "
          "allocation, and its parts: direct reclaim, and direct compaction without and with waits "
          "(async, sync). One allocation may reclaim and compact many times; RETRIES counts the "
          "reclaims after the first. The rest of the time is spent between these steps: in waits "
          "for a CPU, for other tasks that reclaim, or for a killed process to end.\n\n"
          "STEPS has the steps in their order: kswapd is woken, compaction of a zone with its "
          "result, reclaim with the pages that it freed, and oom: a process was selected to be "
          "killed. After 32 steps only the sums go on.\n\n"
          "Reclaim at the limit of a memory cgroup comes after the allocation, and is shown by "
          "drsnoop --memcg.",
      .overhead =
          "hooks per step of the slow path, which is rare and slow, and one per page allocation, "
          "which takes some tens of nanoseconds if no allocation is in the slow path",
      .examples = {{"allocslower", "allocations of one millisecond and more"},
                   {"allocslower 0 -e", "all that reach the slow path, with flags and all parts"},
                   {"allocslower 10 -K", "those of ten milliseconds and more, with kernel stacks"},
                   {"allocslower -T -p 181", "what process 181 waits for, with times"}},
      .questions = {{"What do allocations wait for when memory is short, and how long?",
                     "allocslower -T"},
                    {"Does one allocation reclaim or compact memory many times?",
                     "allocslower 10 -e"},
                    {"Which code waits for memory?", "allocslower -K -d 10"}},
      .object = skeleton<allocslower_bpf>(),
      .positionals = {shared::threshold("MIN_MS", kMillisecond,
                                        "only allocations that take at least MIN_MS milliseconds; "
                                        "0: all that reach the slow path",
                                        setting(&Opt::min_ns), "1")},
      .options =
          joined({{shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::name('n'),
                   shared::cgroup(), shared::duration('d'), shared::timestamp(),
                   shared::print_uid(), shared::extended(), shared::kernel_stack()},
                  belonging_to("kernel-stack", {shared::stack_depth()})}),
      .hooks = {{"direct reclaim", {{{progs::on_reclaim_begin, progs::on_reclaim_end}}}},
                {"end of the allocation", {{{progs::on_alloc}}}},
                {"wakeups of kswapd", {{{progs::on_kswapd}}}},
                {"compaction",
                 {{{progs::on_compaction, progs::on_zone_begin, progs::on_zone_end}}},
                 {},
                 "compaction is not seen: this kernel is built without it"},
                {"victims", {{{progs::on_victim}}}, {}, "selected processes are not seen"}},
      .report =
          events<Event>(
              {who<&Event::who>(id::uid, id::comm, id::pid),
               field<&Event::order>("order", "ORDER", as::small, "2^order pages were requested"),
               field<&Event::total_ns>("latency_ns", "LAT(ms)", as::milliseconds,
                                       "time from the first step to the end of the allocation"),
               time_field<&Parts::reclaim_ns>("reclaim_ns", "RECLAIM(ms)",
                                              "time in direct reclaim"),
               count_field<&Parts::reclaimed>("reclaimed_pages", "PAGES", "pages reclaimed"),
               time_field<&Parts::async_ns>("async_compaction_ns", "ASYNC(ms)",
                                            "time in compaction that does not wait"),
               time_field<&Parts::sync_ns>("sync_compaction_ns", "SYNC(ms)",
                                           "time in compaction that may wait"),
               derived<Event, retries>("retries", "RETRIES", as::wide(as::number, 7),
                                       "runs of direct reclaim after the first"),
               count_field<&Parts::reclaims>("reclaims", "RECLAIMS", "runs of direct reclaim")
                   .with("extended"),
               count_field<&Parts::asyncs>("async_compactions", "ASYNCS",
                                           "zones compacted without waits")
                   .with("extended"),
               count_field<&Parts::syncs>("sync_compactions", "SYNCS", "zones compacted with waits")
                   .with("extended"),
               count_field<&Parts::wakeups>("kswapd_wakeups", "KSWAPD",
                                            "wakeup requests for kswapd")
                   .with("extended"),
               count_field<&Parts::victims>("victims", "VICTIMS", "processes selected to be killed")
                   .with("extended"),
               derived<Event, failed>("no_page", "FAILED", as::wide(as::text, -6),
                                      "the allocation got no page")
                   .with("extended"),
               field<&Event::gfp>("gfp_flags", "GFP", as::gfp, "flags of the allocation")
                   .with("extended"),
               derived<Event, steps>("steps", "STEPS", as::rest, "the steps in their order"),
               who<&Event::who>(id::tid, id::cgroup)},
              "kernel-stack")
              .timed_at_begin(),
      .announce = "Tracing slow page allocations",
  };
}
