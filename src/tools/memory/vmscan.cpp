// vmscan: memory reclaim, by cause.
#include "memory/vmscan.h"

#include "coretap/config.hpp"
#include "coretap/memory_counters.hpp"
#include "coretap/reclaim.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "vmscan.skel.h"

using namespace coretap;
using Key = vmscan_key;
using Opt = rodata_of<vmscan_bpf>;
using Sums = vmscan_sums;
using Pages = vmscan_pages;
using PagesLine = Row<vmscan_pages_key, Pages>;
using Shrinker = vmscan_shrinker;
using ShrinkerLine = Row<vmscan_shrinker_key, Shrinker>;

namespace {

constexpr std::string_view kKinds[] = {"slab", "direct", "memcg"};
static_assert(std::size(kKinds) == VMSCAN_KINDS);

constexpr When kUsual = "!distributed|pages|shrinkers";  // the report without these

constexpr std::string_view kPageTypes[] = {"anon", "file"};

constexpr auto kTime = as::wide(as::milliseconds, 11);

template <auto Counters, vmscan_kind Kind>
std::uint64_t of(const Sums& s) {
  return (s.*Counters)[Kind];
}

Value reclaimed_ratio(const PagesLine& l) {
  return value_if(l.value.scanned,
                  static_cast<double>(l.value.reclaimed) / static_cast<double>(l.value.scanned));
}

Value shrinker_name(const ShrinkerLine& l) {
  auto name = text_in(l.key.name);
  return name.empty() ? Value() : Value(name);
}

Result<void> look_up(Config& c) {
  auto state = read_file("/sys/kernel/mm/lru_gen/enabled");
  if (!c.given("pages") || !state || state->starts_with("0x0000")) return {};
  c.set(setting(&Opt::lru_gen), 1);
  return {};
}

AggregateReport pages_report() {
  return table<vmscan_pages_key, Pages>(
      maps::pages,
      {named_key<PagesLine, &vmscan_pages_key::cause, kReclaimCauses>(
           "cause", "CAUSE", as::wide(as::text, -6), "direct, kswapd, memcg or other"),
       named_key<PagesLine, &vmscan_pages_key::file, kPageTypes>(
           "pages", "PAGES", as::wide(as::text, -5),
           "anon: anonymous and shared memory, file: page cache"),
       of_value<PagesLine, &Pages::scanned>("scanned_pages", "SCANNED", as::number,
                                            "pages scanned on inactive lists"),
       of_value<PagesLine, &Pages::reclaimed>("reclaimed_pages", "RECLAIMED", as::number,
                                              "pages reclaimed"),
       derived<PagesLine, reclaimed_ratio>("reclaimed_ratio", "EFF%", as::percent,
                                           "reclaimed pages of those scanned")
           .or_null(),
       of_value<PagesLine, &Pages::dirty>("dirty_pages", "DIRTY", as::pages,
                                          "scanned pages that had not been written"),
       of_value<PagesLine, &Pages::writeback>("writeback_pages", "WRITEBACK",
                                              as::wide(as::number, 9),
                                              "scanned pages that were being written")},
      "scanned_pages");
}

AggregateReport shrinkers_report() {
  return table<vmscan_shrinker_key, Shrinker>(
      maps::shrinkers,
      {of_key<ShrinkerLine, &vmscan_shrinker_key::function>("shrinker", "SHRINKER", as::symbol,
                                                            "function that frees the objects")
           .bounded(),
       of_value<ShrinkerLine, &Shrinker::runs>("runs", "RUNS", as::pages, "runs of it"),
       of_value<ShrinkerLine, &Shrinker::freed>("freed_objects", "OBJECTS", as::number,
                                                "objects that it freed"),
       of_value<ShrinkerLine, &Shrinker::time_ns>("time_ns", "TIME(ms)", as::milliseconds,
                                                  "total time of its runs"),
       derived<ShrinkerLine, shrinker_name>(
           "name", "NAME", as::rest,
           "its name in /sys/kernel/debug/shrinker; null: this kernel has no names")
           .or_null()
           .key_part()},
      "time_ns,runs");
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
          "--pages shows which pages reclaim scans and frees: anonymous and shared memory, or page "
          "cache, by cause: tasks themselves because free memory was short (direct), kswapd, the "
          "limit of a memory cgroup (memcg), and other reclaim, such as that of a NUMA node, or "
          "what began before tracing. A low EFF% means that pages are in use, dirty, or being "
          "written. These are the pages of pgscan and pgsteal in /proc/vmstat.\n\n"
          "--shrinkers shows each slab shrinker by the function that frees the objects, with its "
          "runs, time and freed objects.\n\n"
          "--counters shows instead by how much the kernel's own counters of reclaim, swap, "
          "compaction and transparent huge pages grew, such as compact_fail and "
          "thp_fault_fallback: of the whole machine, without filters by task. A counter that did not grow has no "
          "row. drsnoop, compactsnoop and hfaults show the tasks.\n\n"
          "Filters apply to the task that reclaims, or that wakes kswapd; kswapd is a separate "
          "task.",
      .overhead =
          "two hooks per run of reclaim and per slab shrinker called, no output per event; no cost "
          "while memory is free. --counters attaches nothing",
      .examples = {{"vmscan", "a line per second"},
                   {"vmscan -e 5 12", "a minute, every five seconds, with all numbers"},
                   {"vmscan -d 60 1", "histograms of a minute"},
                   {"vmscan --pages 10", "what is scanned and freed, every ten seconds"},
                   {"vmscan --shrinkers 60 1", "the shrinkers of a minute"},
                   {"vmscan --counters -T 10", "what the kernel counted, every ten seconds"},
                   {"vmscan -c system.slice/nginx.service", "reclaim that this service waits for"}},
      .questions = {{"Is memory short: how hard does the kernel reclaim?", "vmscan"},
                    {"Do tasks wait for reclaim, or does kswapd keep up?", "vmscan -e 5 12"},
                    {"Does the kernel reclaim anonymous pages or page cache, and how efficiently?",
                     "vmscan --pages 10"},
                    {"Are slab shrinkers slow, and which?", "vmscan --shrinkers 60 1"},
                    {"How often does compaction fail, or a huge page allocation?",
                     "vmscan --counters 10"}},
      .object = skeleton<vmscan_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined(
          {{flag('d', "distributed", "histograms of the times of the runs",
                 setting(&Opt::distributed)),
            flag(0, "pages", "pages scanned and reclaimed, by cause and type",
                 setting(&Opt::by_pages)),
            flag(0, "shrinkers", "slab shrinkers, each with its time and objects",
                 setting(&Opt::by_shrinker)),
            flag(0, "counters", "the kernel's counters of reclaim, compaction and huge pages")},
           belonging_to("counters", {shared::timestamp()}),
           belonging_to("!distributed", {shared::extended()}),
           belonging_to("pages|shrinkers", {shared::sort()}),
           belonging_to("shrinkers", {shared::top(), shared::max_keys()}),
           shared::task_filters()}),
      .hooks =
          {{"direct reclaim", {{{progs::on_direct_begin, progs::on_direct_end}}}, "!shrinkers"},
           {"memory cgroup reclaim",
            {{{progs::on_memcg_begin, progs::on_memcg_end}}},
            "!shrinkers",
            "reclaim by memory cgroups is not seen: this kernel is built without them"},
           {"slab shrinkers", {{{progs::on_slab_start, progs::on_slab_end}}}, "!pages"},
           {"wakeups of kswapd", {{{progs::on_kswapd_wakeup}}}, kUsual},
           {"kswapd", {{{progs::on_kswapd_wake, progs::on_kswapd_sleep}}}, kUsual},
           {"pages written", {{{progs::on_write_folio}}, {{progs::on_write_page}}}, kUsual},
           {"pages scanned",
            {{{progs::on_isolate, progs::on_shrink}, {has_arguments("mm_vmscan_lru_isolate", 7)}},
             // 6.7 changed both (3dfbb555c98a, 8c2214fc9a47).
             {.programs = {progs::on_isolate, progs::on_shrink},
              .needs = {has_field("mm_struct", "lru_gen")},
              .caveat = "pages that the multi-generational LRU scans are not seen on this "
                        "kernel, if it is on (/sys/kernel/mm/lru_gen/enabled)"},
             {{progs::on_isolate, progs::on_shrink}}},
            "pages"}},
      .report =
          sums<Sums>(
              maps::reclaims_cpus,
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
      .other_reports = {{"distributed", histogram<Key>(maps::durations, "reclaim times",
                                                       {named<&Key::kind, kKinds>(
                                                           "kind", "reclaim", as::text,
                                                           "direct, memcg, or slab: shrinkers")})},
                        {"pages", pages_report()},
                        {"shrinkers", shrinkers_report()},
                        {"counters", memory_counters<MemoryCounters::reclaim>()}},
      .announce = "Tracing memory reclaim",
      .exclusive = {{"distributed", "pages"},
                    {"distributed", "shrinkers"},
                    {"distributed", "counters"},
                    {"pages", "shrinkers"},
                    {"pages", "counters"},
                    {"shrinkers", "counters"},
                    {"extended", "counters"},
                    {"extended", "pages"},
                    {"extended", "shrinkers"}},
      .look_up = look_up,
  };
}
