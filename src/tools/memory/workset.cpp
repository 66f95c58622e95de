// workset: refaults, and the memory that would have prevented them.
#include "memory/workset.h"

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "coretap/config.hpp"
#include "coretap/kernel.hpp"
#include "coretap/parse.hpp"
#include "coretap/percentiles.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "tools/memory/workset/report_counters.hpp"
#include "workset.skel.h"

using namespace coretap;
using workset::Counter;
using Key = workset_key;
using Pages = workset_pages;
using Line = Row<Key, Pages>;

namespace {

constexpr std::array<double, WORKSET_PERCENTILES> kPercents = {50, 75, 90, 95, 99};
constexpr std::string_view kTypes[] = {"anon", "file"};
constexpr When kDistances = "distances|distributed";

// ---- the kernel's counters ----

template <Counter Which>
Value added(const WorksetRow& row) {
  auto count = row.added[Which];
  return value_if(count.has_value(), count.value_or(0));
}

template <Counter Which>
Field counter(std::string_view key, std::string_view title, std::string_view doc) {
  return derived<WorksetRow, added<Which>>(key, title, as::wide(as::number, 9), doc)
      .counter()
      .or_null();
}

Value path(const WorksetRow& row) { return value_if(!row.cgroup.empty(), row.cgroup); }

WorksetReport counters_report() {
  FieldList fields = {
      counter<workset::refaulted_anon>(
          "refaulted_anon_pages", "REF-ANON",
          "anonymous and shared memory that was evicted and came back"),
      counter<workset::refaulted_file>("refaulted_file_pages", "REF-FILE",
                                       "page cache that was evicted and came back"),
      counter<workset::activated_anon>(
          "activated_anon_pages", "ACT-ANON",
          "of the refaults: became active at once, as more memory or less active memory would "
          "have kept them"),
      counter<workset::activated_file>("activated_file_pages", "ACT-FILE", "the same of files"),
      counter<workset::restored_anon>(
          "restored_anon_pages", "RES-ANON",
          "of the refaults: had been active before they were evicted (thrashing)"),
      counter<workset::restored_file>("restored_file_pages", "RES-FILE", "the same of files"),
      counter<workset::evicted_anon>("evicted_anon_pages", "EVICT-ANON",
                                     "anonymous and shared memory that reclaim freed")
          .only("!by"),
      counter<workset::evicted_file>("evicted_file_pages", "EVICT-FILE",
                                     "page cache that reclaim freed")
          .only("!by"),
      counter<workset::evicted>("evicted_pages", "EVICTED", "pages that reclaim freed")
          .only(kNamedByOnly),
      counter<workset::shadow_nodes>(
          "shadow_nodes", "NODES",
          "nodes of the page cache's tree, with the records of evicted pages, that reclaim freed: "
          "later refaults of these pages are not seen"),
      field<&WorksetRow::cgroup_id>("cgroup_id", "", as::number, "id of the cgroup")
          .with("json")
          .only(kNamedByOnly),
      derived<WorksetRow, path>("cgroup", "CGROUP", as::rest, "the cgroup, with those below it")
          .key_part()
          .or_null()
          .capped()
          .only(kNamedByOnly)};
  return {std::move(fields)};
}

// ---- refault distances ----

template <std::size_t Index>
Field needed(std::string_view key, std::string_view title) {
  return derived<Line, [](const Line& l) { return l.value.percentiles[Index] * page_bytes(); }>(
      key, title, as::wide(as::kilobytes, 10),
      "additional memory with which this percentage of the pages would not have been evicted");
}

Value cgroup_path(std::uint64_t id, const FieldContext& context) {
  if (!id || !context.cgroup_name) return {};
  auto name = context.cgroup_name(id, CgroupName::path);
  return value_if(!name.empty(), name);
}

AggregateReport distances_report() {
  auto all = table<Key, Pages>(
      maps::pages,
      {named_key<Line, &Key::file, kTypes>("pages", "PAGES", as::wide(as::text, -5),
                                           "anon: anonymous and shared memory, file: page cache"),
       of_value<Line, &Pages::refaulted>("refaulted_pages", "REFAULTS", as::number,
                                         "pages that were evicted and came back"),
       needed<0>("p50_bytes", "50%(KB)"), needed<1>("p75_bytes", "75%(KB)"),
       needed<2>("p90_bytes", "90%(KB)"), needed<3>("p95_bytes", "95%(KB)"),
       needed<4>("p99_bytes", "99%(KB)"),
       derived<Line, [](const Line& l) { return unless_0(l.key.cgroup); }>(
           "cgroup_id", "", as::number, "id of the cgroup that needs more memory")
           .or_null()
           .key_part()
           .with("json"),
       derived<Line, [](const Line& l, const FieldContext&
                                           context) { return cgroup_path(l.key.cgroup, context); }>(
           "cgroup", "CGROUP", as::rest,
           "cgroup that needs more memory: its limit evicted the pages; /: the machine")
           .or_null()
           .key_part()
           .capped()},
      "refaulted_pages");
  all.bucket_at = offsetof(Key, bucket);
  all.usual_percentiles.assign(kPercents.begin(), kPercents.end());
  return std::move(all).without_owner("they are of cgroups and the machine");
}

AggregateReport histograms_report() {
  return histogram<Key>(
             maps::distances, "refault distances, in memory",
             {named<&Key::file, kTypes>("pages", "pages", as::text,
                                        "anon: anonymous and shared memory, file: page cache")})
      .scaled({.unit = unit::bytes, .step = 1024})
      .without_owner("they are of cgroups and the machine");
}

Result<void> look_up(Config& c) {
  if (!c.holds(kDistances)) return {};
  auto state = read_file("/sys/kernel/mm/lru_gen/enabled").value_or("0");
  auto digits = std::string_view(state).substr(0, state.find('\n'));
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  if (parse_hexadecimal(digits).value_or(0) & 1)
    return Error{"refault distances are not known",
                 "the multi-generational LRU is on, which does not keep them",
                 "without --distances the kernel's counters are reported; "
                 "/sys/kernel/mm/lru_gen/enabled turns it off",
                 kUnsupported};
  if (static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) >> WORKSET_DISTANCE_BITS)
    return Error{"refault distances are not known",
                 "this machine has more memory than they can be told for",
                 "without --distances the kernel's counters are reported", kUnsupported};
  return {};
}

}  // namespace

TOOL(workset) {
  return {
      .name = "workset",
      .summary = "evicted pages that come back (refaults), and the memory that is missing",
      .description =
          "Refaults are pages that reclaim evicted and that were then needed again: the working set "
          "does not fit into memory. Each interval shows by how much the kernel's counters of "
          "refaults, of what became of them, and of evicted pages grew, in pages, for anonymous and shared "
          "memory (which come back from swap) and for the page cache. Few evictions that come back "
          "are harmless. Refaults that had been active (RES-ANON, RES-FILE) mean thrashing. --by "
          "cgroup shows them by memory cgroup; a cgroup contains those below it, and counts of a "
          "cgroup that is removed remain in the one above it. In cgroups of version 1 the kernel "
          "counts refaults only.\n\n"
          "--distances tells how much memory was missing. The refault distance of a page is the "
          "number of pages that were evicted or activated between its eviction and its return: with "
          "that much more memory it would not have been evicted. The columns are percentiles of the "
          "distances: 90%(KB) is the additional memory with which 90 % of the pages would have "
          "stayed. It is missing to the machine (/), or to the cgroup whose limit evicted the pages. "
          "-d shows histograms of the distances.\n\n"
          "Distances are pages of one NUMA node. A page that comes back by a task of a cgroup that "
          "is not below the one whose limit evicted it has no distance and counts as unmatched. The "
          "multi-generational LRU, if it is on, keeps no distances.\n\n"
          "What is in memory but not used cannot be told by refaults. The kernel's DAMON "
          "(/sys/kernel/mm/damon/admin) can sample it; workset does not turn it on.",
      .overhead =
          "none: counters that the kernel has anyway are read at each interval, for --by cgroup a "
          "file for each cgroup. --distances and -d: one hook per refault, counted in the kernel",
      .examples = {{"workset", "a line per second"},
                   {"workset --by cgroup 10 6", "a minute, by cgroup, every ten seconds"},
                   {"workset 1000 -- make", "refaults of the machine while this command runs"},
                   {"workset --distances 60 1", "the memory that was missing in a minute"},
                   {"workset -d -p 181 60 1", "histograms, of pages that process 181 needs again"}},
      .questions = {{"Does the working set fit into memory, or does the machine thrash?",
                     "workset"},
                    {"Which cgroup has too little memory for its working set?",
                     "workset --by cgroup 10"},
                    {"How much more memory would avoid that evicted pages come back?",
                     "workset --distances 60 1"}},
      .object = skeleton<workset_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined(
          {{flag(0, "distances",
                 "the additional memory that would have kept refaulted pages, by percentage"),
            flag('d', "distributed", "histograms of refault distances",
                 setting(&rodata_of<workset_bpf>::distributed)),
            shared::top()},
           belonging_to("distances", {shared::sort(), shared::max_keys()}),
           shared::task_filters()}),
      .hooks = {{"refaults",
                 {{{progs::on_refault}}, {{progs::on_refault_kprobe}}},
                 kDistances,
                 {},
                 {},
                 "without --distances and -d the kernel's counters are reported"}},
      .report = counters_report(),
      .other_reports = {{"distances", distances_report()}, {"distributed", histograms_report()}},
      .announce = "Tracing refaults",
      .exclusive = {{"distances", "distributed"}, {"distributed", "top"}},
      .look_up = look_up,
  };
}
