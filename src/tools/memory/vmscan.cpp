// vmscan: memory reclaim, by cause.
#include "memory/vmscan.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "vmscan.skel.h"

using namespace coretap;
using Key = vmscan_key;
using Opt = rodata_of<vmscan_bpf>;
using Sums = vmscan_sums;

namespace {

constexpr std::string_view kKinds[] = {"slab", "direct", "memcg"};
static_assert(std::size(kKinds) == VMSCAN_KINDS);

constexpr auto kTime = as::wide(as::milliseconds, 11);

template <auto Counters, vmscan_kind Kind>
std::uint64_t of(const Sums& s) {
  return (s.*Counters)[Kind];
}

}  // namespace

TOOL(vmscan) {
  return {
      .name = "vmscan",
      .summary = "memory reclaim: time in it by cause, and how often kswapd is woken",
      .description =
          "For each interval: the time that tasks spent in slab shrinkers (S-SLABms), in direct "
          "reclaim because free memory was short (D-RECLAIMms), and in reclaim at the limit of a "
          "memory cgroup (M-RECLAIMms); the number of wakeup requests for kswapd (KSWAPD), the CPU "
          "time of kswapd (K-CPUms), and the pages that reclaim wrote out (WRITEPAGE). --extended "
          "adds the number of runs, and what they freed.\n\n"
          "Slab shrinkers mostly run as part of reclaim, and S-SLABms is then included in the "
          "other times too; shrinkers that kswapd, drop_caches or debugfs call are in no other. "
          "Time is added when a run ends. -d shows histograms of the times of the runs.\n\n"
          "Filters apply to the task that reclaims, or that wakes kswapd; kswapd is a separate "
          "task.",
      .overhead =
          "two hooks per run of reclaim and per slab shrinker called, no output per event; no cost "
          "while memory is free",
      .examples = {{"vmscan", "a line per second"},
                   {"vmscan -e 5 12", "a minute, every five seconds, with all numbers"},
                   {"vmscan -d 60 1", "histograms of a minute"},
                   {"vmscan -c system.slice/nginx.service", "reclaim that this service waits for"}},
      .questions = {{"Is memory short: how hard does the kernel reclaim?", "vmscan"},
                    {"Do tasks wait for reclaim, or does kswapd keep up?", "vmscan -e 5 12"},
                    {"Are slab shrinkers slow?", "vmscan -d 60 1"}},
      .object = skeleton<vmscan_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined({{flag('d', "distributed", "histograms of the times of the runs",
                               setting(&Opt::distributed))},
                         belonging_to("!distributed", {shared::extended()}),
                         shared::task_filters()}),
      .hooks = {{"direct reclaim", {{{"on_direct_begin", "on_direct_end"}}}},
                {"memory cgroup reclaim",
                 {{{"on_memcg_begin", "on_memcg_end"}}},
                 {},
                 "reclaim by memory cgroups is not seen: this kernel is built without them"},
                {"slab shrinkers", {{{"on_slab_start", "on_slab_end"}}}},
                {"wakeups of kswapd", {{{"on_kswapd_wakeup"}}}, "!distributed"},
                {"kswapd", {{{"on_kswapd_wake", "on_kswapd_sleep"}}}, "!distributed"},
                {"pages written", {{{"on_write_folio"}}, {{"on_write_page"}}}, "!distributed"}},
      .report =
          sums<Sums>(
              "reclaims",
              {derived<Sums, of<&Sums::time_ns, VMSCAN_SLAB>>(
                   "slab_ns", "S-SLABms", as::wide(as::milliseconds, 8), "time in slab shrinkers")
                   .counter(),
               derived<Sums, of<&Sums::time_ns, VMSCAN_DIRECT>>("direct_ns", "D-RECLAIMms", kTime,
                                                                "time in direct reclaim")
                   .counter(),
               derived<Sums, of<&Sums::time_ns, VMSCAN_MEMCG>>(
                   "memcg_ns", "M-RECLAIMms", kTime,
                   "time in reclaim at the limit of a memory cgroup")
                   .counter(),
               field<&Sums::kswapd_wakeups>("kswapd_wakeups", "KSWAPD", as::wide(as::number, 6),
                                            "wakeup requests for kswapd"),
               field<&Sums::written>("written_pages", "WRITEPAGE", as::wide(as::number, 9),
                                     "pages that reclaim wrote out"),
               field<&Sums::kswapd_ns>("kswapd_cpu_ns", "K-CPUms", as::milliseconds,
                                       "CPU time of kswapd; up to a tick of it is added later"),
               with(
                   "extended",
                   {derived<Sums, of<&Sums::runs, VMSCAN_SLAB>>("slab_runs", "S-RUNS", as::pages,
                                                                "runs of slab shrinkers")
                        .counter(),
                    derived<Sums, of<&Sums::freed, VMSCAN_SLAB>>(
                        "slab_freed_objects", "S-OBJS", as::pages, "objects that they freed")
                        .counter(),
                    derived<Sums, of<&Sums::runs, VMSCAN_DIRECT>>(
                        "direct_runs", "D-RUNS", as::pages, "runs of direct reclaim")
                        .counter(),
                    derived<Sums, of<&Sums::freed, VMSCAN_DIRECT>>(
                        "direct_reclaimed_pages", "D-PAGES", as::pages, "pages that they reclaimed")
                        .counter(),
                    derived<Sums, of<&Sums::runs, VMSCAN_MEMCG>>(
                        "memcg_runs", "M-RUNS", as::pages, "runs of reclaim of a memory cgroup")
                        .counter(),
                    derived<Sums, of<&Sums::freed, VMSCAN_MEMCG>>(
                        "memcg_reclaimed_pages", "M-PAGES", as::pages, "pages that they reclaimed")
                        .counter(),
                    field<&Sums::kswapd_runs>("kswapd_runs", "K-RUNS", as::pages,
                                              "runs of kswapd")})})
              .counted_by(VMSCAN_KINDS + 2)
              .always_timed(),
      .other_reports = {{"distributed", histogram<Key>("durations", "reclaim times",
                                                       {named<&Key::kind, kKinds>(
                                                           "kind", "reclaim", as::text,
                                                           "direct, memcg, or slab: shrinkers")})}},
      .announce = "Tracing memory reclaim",
  };
}
