#include "coretap/memory_counters.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"

namespace coretap {

namespace {

constexpr char kCounters[] = "/proc/vmstat";
constexpr std::string_view kHuge[] = {"thp_", "compact_", "pgmigrate_"};
constexpr std::string_view kReclaim[] = {
    "thp_",    "compact_",   "pgmigrate_",    "pgscan",     "pgsteal",      "allocstall",
    "kswapd_", "pageoutrun", "slabs_scanned", "pswp",       "pginodesteal", "zone_reclaim",
    "drop_",   "oom_kill",   "swpout_zero",   "swpin_zero", "pgdemote_",    "pgpromote_success"};

struct Meaning {
  std::string_view counter, words;
};
/// The first one whose name is the beginning of the counter's.
constexpr Meaning kMeanings[] = {
    {"compact_migrate_scanned", "pages that compaction looked at to move them"},
    {"compact_free_scanned", "pages that compaction looked at for free ones"},
    {"compact_isolated", "pages that compaction took to move them or fill them"},
    {"compact_stall", "allocations that compacted memory themselves"},
    {"compact_fail", "of these: no page of the order was free after it"},
    {"compact_success", "of these: got their page"},
    {"compact_daemon_wake", "runs of kcompactd"},
    {"compact_daemon_migrate_scanned", "pages that kcompactd looked at to move them"},
    {"compact_daemon_free_scanned", "pages that kcompactd looked at for free ones"},
    {"pgmigrate_success", "pages moved, by compaction, NUMA balancing or others"},
    {"pgmigrate_fail", "pages that could not be moved"},
    {"thp_fault_alloc", "page faults that got a huge page"},
    {"thp_fault_fallback", "page faults that got small pages: no huge page was free"},
    {"thp_collapse_alloc_failed", "khugepaged found no free huge page"},
    {"thp_collapse_alloc", "huge pages that khugepaged allocated"},
    {"thp_file_alloc", "huge pages allocated for shared memory or files"},
    {"thp_file_fallback", "small pages instead, for shared memory or files"},
    {"thp_file_mapped", "huge pages of shared memory or files that were mapped"},
    {"thp_split_page_failed", "huge pages that could not be split"},
    {"thp_split_page", "huge pages split into small ones"},
    {"thp_deferred_split_page", "huge pages to be split when memory is short"},
    {"thp_split_pmd", "mappings by a huge page that became small ones"},
    {"thp_zero_page_alloc_failed", "there was no memory for the huge zero page"},
    {"thp_zero_page_alloc", "the huge zero page was allocated"},
    {"thp_swpout_fallback", "huge pages split before they were swapped out"},
    {"thp_swpout", "huge pages swapped out as a whole"},
    {"thp_swpin", "huge pages swapped in as a whole"},
    {"thp_migration_success", "huge pages moved as a whole"},
    {"thp_migration_fail", "huge pages that could not be moved"},
    {"thp_migration_split", "huge pages split to move their parts"},
    {"pgscan_kswapd", "pages that kswapd scanned"},
    {"pgscan_direct_throttle", "tasks that had to wait before they reclaimed"},
    {"pgscan_direct", "pages scanned by tasks that allocate"},
    {"pgsteal_kswapd", "pages that kswapd reclaimed"},
    {"pgsteal_direct", "pages reclaimed by tasks that allocate"},
    {"allocstall", "tasks reclaimed memory themselves"},
    {"pageoutrun", "runs of kswapd"},
    {"slabs_scanned", "objects of slab caches that reclaim looked at"},
    {"pswpin", "pages swapped in"},
    {"pswpout", "pages swapped out"},
    {"oom_kill", "processes that the OOM killer ended"},
};

struct Line {
  std::string counter;
  std::uint64_t added = 0;
};

Value meaning(const Line& l) {
  for (auto& m : kMeanings)
    if (l.counter.starts_with(m.counter)) return std::string(m.words);
  return {};
}
std::string meaning_text(const Line& l) {
  auto words = meaning(l);
  auto* text = std::get_if<std::string>(&words);
  return text ? *text : "";
}

class Growth : public Counting {
 public:
  Growth(const Config& config, std::span<const std::string_view> names)
      : config_(config), names_(names) {}

  Result<void> start(Session&) override {
    if (config_.tasks != Config::Tasks())
      return Error{"the kernel does not count these by task",
                   {},
                   "leave out the filters by task, or --counters",
                   kUsage};
    auto first = next();
    if (!first) return first.error();
    return {};
  }

  Result<Since> next() override {
    auto text = read_file(kCounters);
    if (!text)
      return Error{std::string("cannot read ") + kCounters, strerror(errno), {}, kUnsupported};
    std::vector<Line> lines;
    for (std::string_view rest = *text; !rest.empty();) {
      auto line = take_until(rest, '\n');
      auto name = take_until(line, ' ');
      auto count = parse_unsigned(line);
      if (!count || std::ranges::none_of(names_, [&](auto n) { return name.starts_with(n); }))
        continue;
      auto [before, fresh] = before_.try_emplace(std::string(name), *count);
      // Sums over CPUs that are read one after the other may seem to shrink.
      if (auto old = std::exchange(before->second, *count); *count > old)
        lines.push_back({std::string(name), *count - old});
    }
    return Since{reading(std::move(lines))};
  }

 private:
  const Config& config_;
  std::span<const std::string_view> names_;
  std::map<std::string, std::uint64_t, std::less<>> before_;
};

}  // namespace

template <MemoryCounters Which>
SnapshotReport memory_counters() {
  return snapshot<Line>(
             "/proc/vmstat",
             {field<&Line::counter>("counter", "COUNTER", as::wide(as::text, -30),
                                    "name of the kernel's counter, of the whole machine"),
              field<&Line::added>("count", "COUNT", as::number, "by how much it grew").counter(),
              derived<Line, meaning>("meaning", "", as::text,
                                     "what it counts; null: not known to this version")
                  .or_null()
                  .with("json"),
              derived<Line, meaning_text>("meaning_text", "MEANING", as::rest, "what it counts")
                  .in_text()})
      .counted_by([](const Config& c) -> std::unique_ptr<Counting> {
        if (Which == MemoryCounters::huge_pages) return std::make_unique<Growth>(c, kHuge);
        return std::make_unique<Growth>(c, kReclaim);
      });
}

template SnapshotReport memory_counters<MemoryCounters::reclaim>();
template SnapshotReport memory_counters<MemoryCounters::huge_pages>();

}  // namespace coretap
