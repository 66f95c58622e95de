// extfrag: external fragmentation, and the page allocations that cause it.
#include "memory/extfrag.h"

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/fragmentation.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "extfrag.skel.h"
#include "tools/memory/extfrag/zone_state.hpp"

using namespace coretap;
using Opt = rodata_of<extfrag_bpf>;
using Event = extfrag_event;
using Line = Row<extfrag_key, extfrag_count>;

namespace {

constexpr auto kMigrateType = as::enumerator("migratetype", "MIGRATE_", -11);

const extfrag_fallback& fallback(const Event& e) { return e.fallback; }
const extfrag_fallback& fallback(const Line& l) { return l.key.fallback; }

template <class Record, auto Member>
std::uint64_t part(const Record& r) {
  return fallback(r).*Member;
}
template <class Record, auto Member>
bool yes(const Record& r) {
  return fallback(r).*Member;
}

const Zone* zone_of(const Event& e) { return zones() ? (*zones()).of(e.pfn) : nullptr; }
Value node(const Event& e) {
  auto* zone = zone_of(e);
  return zone ? Value(std::uint64_t{zone->name.node}) : Value();
}
Value zone(const Event& e) {
  auto* zone = zone_of(e);
  return zone ? Value(zone->name.zone) : Value();
}

/// As in the kernel's trace output, without the address of struct page.
std::string as_traced(const Event& e) {
  auto& f = e.fallback;
  return fmt::format(
      "pfn={:#x} alloc_order={} fallback_order={} pageblock_order={} alloc_migratetype={} "
      "fallback_migratetype={} fragmenting={} change_ownership={}",
      e.pfn, f.alloc_order, f.fallback_order, e.pageblock_order, f.alloc_type, f.fallback_type,
      f.fragmenting, f.change_ownership);
}

/// Fields of both reports.
template <class Record>
struct Fields {
  static Field alloc_type() {
    return derived<Record, part<Record, &extfrag_fallback::alloc_type>>(
        "alloc_migratetype", "AMIGTYPE", kMigrateType, "requested migrate type");
  }
  static Field fallback_type() {
    return derived<Record, part<Record, &extfrag_fallback::fallback_type>>(
        "fallback_migratetype", "FMIGTYPE", kMigrateType, "migrate type that the pages came from");
  }
  static Field alloc_order() {
    return derived<Record, part<Record, &extfrag_fallback::alloc_order>>(
        "alloc_order", "AORDER", as::wide(as::number, 6), "2^order pages were requested");
  }
  static Field fallback_order() {
    return derived<Record, part<Record, &extfrag_fallback::fallback_order>>(
        "fallback_order", "FORDER", as::wide(as::number, 6),
        "the free block that the pages came from had 2^order pages");
  }
  static Field fragmenting() {
    return derived<Record, yes<Record, &extfrag_fallback::fragmenting>>(
        "fragmenting", "FRAGMENTING", as::wide(as::text, -11),
        "that block was smaller than a page block, which may now hold pages of two migrate types");
  }
  static Field ownership() {
    return derived<Record, yes<Record, &extfrag_fallback::change_ownership>>(
        "change_ownership", "OWNERSHIP", as::wide(as::text, -9),
        "the page block changed to the requested type");
  }
};

// ---- the indices: numbers of /proc/buddyinfo in the format of debugfs ----

using Index = std::int64_t (*)(const __u64*, int, int);

template <Index index>
std::vector<std::int64_t> thousandths(const FreeBlocks& zone) {
  std::vector<std::int64_t> all(zone.blocks.size());
  auto orders = static_cast<int>(all.size());
  int order = 0;
  for (auto& i : all) i = index(zone.blocks.data(), orders, order++);
  return all;
}

template <Index index>
std::vector<Value> values(const void* record) {
  auto all = thousandths<index>(*static_cast<const FreeBlocks*>(record));
  return {all.begin(), all.end()};
}

/// The two files differ in the width of the integer part, which may include a column for the sign
/// (in 5.10 neither does).
template <Index index, int width>
std::string line(const void* record) {
  auto& zone = *static_cast<const FreeBlocks*>(record);
  auto text = fmt::format("Node {}, zone {:>8} ", zone.name.node, zone.name.zone);
  for (auto i : thousandths<index>(zone))
    text += fmt::format("{:{}}.{:03} ", i / 1000, width, i % 1000);
  return text;
}

constexpr char kBuddyinfo[] = "/proc/buddyinfo", kPagetypeinfo[] = "/proc/pagetypeinfo",
               kZoneinfo[] = "/proc/zoneinfo";
constexpr std::size_t kStateLimit = 64 << 20;  // bytes; files with lines for each zone and CPU

/// The wanted zones of such a file.
template <class Parsed>
Result<Parsed> read_zones(const Config& c, const char* file,
                          std::optional<Parsed> (*parse)(std::string_view),
                          const std::string& hint = {}) {
  errno = 0;
  auto text = read_file(file, kStateLimit);
  if (!text) return Error{fmt::format("cannot read {}", file), strerror(errno), hint, kUnsupported};
  auto zones = parse(*text);
  if (!zones) return Error{fmt::format("cannot read {}", file), "it is not of the usual form"};
  std::erase_if(*zones, [&](auto& z) { return !c.own<WantedMemory>().has(z.name); });
  return std::move(*zones);
}

Result<SnapshotReport::Reading> read_free(const Config& c) {
  auto zones = read_zones(c, kBuddyinfo, parse_buddyinfo);
  if (!zones) return zones.error();
  return reading(std::move(*zones));
}

template <class Record>
std::uint64_t node_of(const Record& r) {
  return r.name.node;
}
template <class Record>
std::string name_of(const Record& r) {
  return r.name.zone;
}
template <class Record>
Field node_field() {
  return derived<Record, node_of<Record>>("node", "NODE", as::wide(as::number, -4), "NUMA node")
      .bounded();
}
template <class Record>
Field zone_field() {
  return derived<Record, name_of<Record>>("zone", "ZONE", as::wide(as::text, -8), "memory zone")
      .bounded();
}

template <Index index, int width>
SnapshotReport index_report(std::string_view key, std::string_view metric, std::string_view doc,
                            std::string_view format) {
  return snapshot<FreeBlocks>(kBuddyinfo, {node_field<FreeBlocks>(), zone_field<FreeBlocks>()},
                              read_free,
                              {key, {"order", "", as::thousandths, doc}, values<index>, metric},
                              line<index, width>, format);
}

// ---- free blocks by migrate type ----

Result<SnapshotReport::Reading> read_types(const Config& c) {
  auto types = read_zones(c, kPagetypeinfo, parse_pagetypeinfo,
                          "run as root or with CAP_DAC_READ_SEARCH, with /proc of the host");
  if (!types) return types.error();
  return reading(std::move(*types));
}

std::vector<Value> blocks_of(const void* record) {
  auto& blocks = static_cast<const TypeBlocks*>(record)->blocks;
  return {blocks.begin(), blocks.end()};
}
std::string type_of(const TypeBlocks& t) { return t.type; }
bool has_more(const TypeBlocks& t) { return std::ranges::count(t.more, true); }
Value alone_below(const TypeBlocks& t) { return unless_0(t.alone_below); }

/// As in /proc/pagetypeinfo, with the mark at the end.
std::string type_line(const void* record) {
  auto& row = *static_cast<const TypeBlocks*>(record);
  auto text =
      fmt::format("Node {:4}, zone {:>8}, type {:>12} ", row.name.node, row.name.zone, row.type);
  for (std::size_t order = 0; order < row.blocks.size(); order++)
    text += fmt::format("{}{:6} ", row.more[order] ? ">" : "", row.blocks[order]);
  if (row.alone_below) text += fmt::format("<- all free blocks below order {}", row.alone_below);
  return text;
}

SnapshotReport types_report() {
  return snapshot<TypeBlocks>(
      "/proc/pagetypeinfo, which only root may read,",
      {node_field<TypeBlocks>(), zone_field<TypeBlocks>(),
       derived<TypeBlocks, type_of>("migratetype", "TYPE", as::text, "migrate type of the blocks")
           .bounded(),
       derived<TypeBlocks, alone_below>(
           "unmovable_below_order", "", as::number,
           "for unmovable blocks: all free blocks of the zone below this order are unmovable, and "
           "there are some; null: that is not so")
           .or_null(),
       derived<TypeBlocks, has_more>("more", "", as::text,
                                     "the kernel stopped counting blocks of an order, to which it "
                                     "prefixes >: there are more")},
      read_types,
      {"free_blocks",
       {"order", "", as::number, "free blocks of 2^N pages"},
       blocks_of,
       "free_blocks"},
      type_line, kPagetypeinfo);
}

// ---- watermarks ----

struct ZoneState {
  Watermarks pages;
  ZoneName name;
  std::optional<std::int64_t> threshold;
  std::vector<Step> steps;
};

Result<SnapshotReport::Reading> read_watermarks(const Config& c) {
  auto zones = read_zones(c, kZoneinfo, parse_watermarks);
  if (!zones) return zones.error();
  auto blocks = read_zones(c, kBuddyinfo, parse_buddyinfo);
  if (!blocks) return blocks.error();
  std::optional<std::int64_t> threshold;
  if (auto set = read_number("/proc/sys/vm/extfrag_threshold")) threshold = *set;
  std::vector<ZoneState> all;
  for (auto& zone : *zones)
    for (auto& free : *blocks)
      if (free.name == zone.name)
        all.push_back({zone, zone.name, threshold, steps_of(zone, free.blocks, threshold)});
  return reading(std::move(all));
}

template <auto Pages>
std::uint64_t pages(const ZoneState& z) {
  return z.pages.*Pages;
}
Value threshold(const ZoneState& z) { return z.threshold ? Value(*z.threshold) : Value(); }
TextList steps(const ZoneState& z) {
  TextList all{{}, in_ranges(z.steps)};
  for (auto step : z.steps) all.each.emplace_back(step_name(step));
  return all;
}

template <auto Pages>
Field pages_field(std::string_view key, std::string_view title, std::string_view doc) {
  return derived<ZoneState, pages<Pages>>(key, title, as::pages, doc).gauge();
}

SnapshotReport watermarks_report() {
  return snapshot<ZoneState>(
      "/proc/zoneinfo and /proc/buddyinfo",
      {node_field<ZoneState>(), zone_field<ZoneState>(),
       pages_field<&Watermarks::free>("free_pages", "FREE", "free pages of the zone"),
       pages_field<&Watermarks::min>("min_pages", "MIN", "its min watermark, in pages"),
       pages_field<&Watermarks::low>("low_pages", "LOW", "its low watermark, in pages"),
       pages_field<&Watermarks::high>("high_pages", "HIGH", "its high watermark, in pages"),
       derived<ZoneState, threshold>(
           "extfrag_threshold", "THRESHOLD", as::wide(as::thousandths, 9),
           "the setting vm.extfrag_threshold / 1000; null: this kernel does not "
           "compact memory")
           .or_null()
           .gauge(),
       derived<ZoneState, steps>("steps", "BY-ORDER", as::rest,
                                 "for each order from 0 on, what serves an allocation: enough, "
                                 "kswapd, compact or reclaim")},
      read_watermarks);
}

// ----

Result<void> look_up(Config& c) {
  auto order = pageblock_order();
  if (!order) return order.error();
  c.set(setting(&Opt::pageblock_order), *order);
  if (!c.holds("node|zone")) return {};
  auto ranges = (*zones()).ranges(c.own<WantedMemory>());
  if (ranges.size() > ZONE_RANGES)
    return Error{"--node or --zone: too many separate pieces of memory",
                 fmt::format("{} here, {} at most", ranges.size(), ZONE_RANGES), "name a node too"};
  auto place = setting(&Opt::filter_pfns).offset;
  for (auto& range : ranges)
    for (auto bound : {range.first, range.end}) {
      c.set({place, sizeof bound}, bound);
      place += sizeof bound;
    }
  c.set(setting(&Opt::filter_pfn_count), ranges.size());
  return {};
}

constexpr When kFallbacks = "!index|unusable|types|watermarks",
               kTable = "!events|index|unusable|types|watermarks";

std::vector<Option> options() {
  return joined(
      {belonging_to(kFallbacks,
                    {flag('a', "all", "also fallbacks that take a whole page block or more",
                          setting(&Opt::all_fallbacks)),
                     number('o', "order", "ORDER", "only allocations of at least 2^ORDER pages",
                            setting(&Opt::least_order))}),
       memory_options(),
       belonging_to(kTable,
                    {flag('P', "process", "count by process too", setting(&Opt::by_process))}),
       {flag('e', "events", "one line per fallback, live", setting(&Opt::each_event)),
        flag('i', "index",
             "the fragmentation index of each zone and order instead of fallbacks: immediately, "
             "and again each interval"),
        flag('u', "unusable", "the same for the unusable free space index"),
        flag(0, "types", "the same for the free blocks of each zone, migrate type and order"),
        flag('w', "watermarks",
             "the same for free memory against the watermarks of each zone, and what the kernel "
             "does at each order")},
       belonging_to("events",
                    {flag(0, "raw", "with --events: the text of the kernel's own trace output"),
                     shared::kernel_stack()}),
       belonging_to("kernel-stack", {shared::stack_depth()}),
       {shared::timestamp()},
       belonging_to(kTable, {shared::top(), shared::sort('s')}),
       shared::task_filters(false),
       {shared::duration('d')},
       belonging_to(kTable, {shared::max_keys()})});
}

}  // namespace

TOOL(extfrag) {
  using OfEvent = Fields<Event>;
  using OfLine = Fields<Line>;
  return {
      .name = "extfrag",
      .summary = "external fragmentation of memory, and its causes",
      .description =
          "The kernel divides memory into page blocks, each for pages of one migrate type: movable "
          "(which compaction can move), unmovable, reclaimable. An allocation that finds no free "
          "page of its type falls back to another type. If it takes less than a whole page block, "
          "it fragments memory: one unmovable page keeps its block from ever becoming a huge "
          "page.\n\n"
          "Counts these fallbacks by type and order, with --process also by process; with --events "
          "each has a line. OWNERSHIP shows whether the page block changed its type. An allocation "
          "in an interrupt counts for the interrupted task.\n\n"
          "--index and --unusable show the state of memory instead, exactly as the files in "
          "/sys/kernel/debug/extfrag do, but from /proc/buddyinfo, for any user: for each zone one "
          "number per order, from 0 on. The fragmentation index shows why an allocation of that "
          "order would fail: towards 0 for lack of memory, towards 1 for fragmentation; -1: it "
          "would succeed. For orders above 3 the kernel compacts a zone only if the index is more "
          "than vm.extfrag_threshold / 1000 (0.500 by default), else it reclaims. The unusable "
          "index is the fraction of free memory that an allocation of that order cannot use: 0 "
          "none of it, 1 all.\n\n"
          "--types shows the free blocks of each zone, migrate type and order, from 0 on, in the "
          "form of /proc/pagetypeinfo. A mark tells that all free blocks of a zone below an order "
          "are unmovable: kernel memory, such as slab caches, fragments the zone there.\n\n"
          "--watermarks shows the free pages and watermarks of each zone, vm.extfrag_threshold, "
          "and what serves an allocation of each order in that zone: enough (a free block, and "
          "free memory above the low watermark), kswapd (the same above the min watermark; kswapd "
          "is woken), compact or reclaim (the task must first compact or reclaim memory itself). "
          "For orders above 3 the fragmentation index decides between these two. If compaction "
          "fails, reclaim follows. Memory that the kernel reserves for lower zones and for "
          "atomic allocations is not taken into account, nor which types of blocks an allocation "
          "can use.",
      .overhead =
          "a hook per fallback, which is rare unless memory is short; counted in the kernel. "
          "--index, --unusable, --types and --watermarks read small files and attach nothing",
      .examples = {{"extfrag", "what fragments memory, until Ctrl-C"},
                   {"extfrag -P 10", "by process, every ten seconds"},
                   {"extfrag -e -K -o 3", "allocations of 8 pages and more, with kernel stacks"},
                   {"extfrag -a -z Normal -- make", "all fallbacks of a command in one zone"},
                   {"extfrag -i", "would an allocation fail, and why"},
                   {"extfrag -u 60 10", "the unusable fraction of free memory, ten times"},
                   {"extfrag --types -z Normal", "free blocks by migrate type of one zone"},
                   {"extfrag -w", "whether an allocation has to compact or reclaim"}},
      .questions = {{"Would a huge-page (or order-N) allocation succeed?", "extfrag -u"},
                    {"Does an allocation fail for lack of memory or for fragmentation?",
                     "extfrag -i"},
                    {"Is free memory below the watermarks, and does the kernel compact or reclaim?",
                     "extfrag -w"},
                    {"Which processes fragment memory?", "extfrag -P 10"}},
      .object = skeleton<extfrag_bpf>(),
      .positionals = shared::interval_count(),
      .options = options(),
      .hooks = {{"fallbacks", {{{progs::on_fallback}}}}},
      .report = table<extfrag_key, extfrag_count>(
          maps::fallbacks,
          {who<&Line::key>(id::pid.only("process"), id::comm.only("process")), OfLine::alloc_type(),
           OfLine::fallback_type(), OfLine::alloc_order(), OfLine::fallback_order(),
           OfLine::fragmenting().with("all"), OfLine::ownership(),
           of_value<Line, &extfrag_count::count>("count", "COUNT", as::pages,
                                                 "number of fallbacks")},
          "count"),
      .other_reports =
          {{"events",
            events<Event>(
                {who<&Event::who>(id::comm, id::pid),
                 derived<Event, node>("node", "NODE", as::wide(as::number, -4),
                                      "NUMA node of the pages")
                     .bounded()
                     .with("!raw"),
                 derived<Event, zone>("zone", "ZONE", as::wide(as::text, -8),
                                      "memory zone of the pages")
                     .bounded()
                     .with("!raw"),
                 OfEvent::alloc_order().with("!raw"), OfEvent::fallback_order().with("!raw"),
                 field<&Event::pageblock_order>("pageblock_order", "PBORDER",
                                                as::wide(as::number, 7),
                                                "a page block has 2^order pages")
                     .with("!raw"),
                 OfEvent::alloc_type().with("!raw"), OfEvent::fallback_type().with("!raw"),
                 OfEvent::fragmenting().with("!raw"), OfEvent::ownership().with("!raw"),
                 derived<Event, as_traced>("traced", "EVENT", as::rest,
                                           "the event as in the kernel's trace output")
                     .in_text()
                     .with("raw"),
                 field<&Event::pfn>("pfn", "PFN", as::number, "page frame number of the first page")
                     .with("json"),
                 who<&Event::who>(id::tid)},
                "kernel-stack")
                .high_rate()},
           {"index",
            index_report<fragmentation_index, 2>(
                "fragmentation_indices", "fragmentation_index",
                "fragmentation index of order N: towards 0 lack of memory, towards 1 fragmentation, "
                "-1 would succeed",
                "/sys/kernel/debug/extfrag/extfrag_index")},
           {"unusable", index_report<unusable_index, 1>(
                            "unusable_indices", "unusable_ratio",
                            "fraction of free memory that order N cannot use, 0 to 1",
                            "/sys/kernel/debug/extfrag/unusable_index")},
           {"types", types_report()},
           {"watermarks", watermarks_report()}},
      .announce = "Tracing page allocations that fall back",
      .exclusive = {{"events", "index"},
                    {"events", "unusable"},
                    {"events", "types"},
                    {"events", "watermarks"},
                    {"index", "unusable"},
                    {"index", "types"},
                    {"index", "watermarks"},
                    {"unusable", "types"},
                    {"unusable", "watermarks"},
                    {"types", "watermarks"},
                    {"raw", "json"},
                    {"raw", "csv"}},
      .check = check_memory,
      .look_up = look_up,
  };
}
