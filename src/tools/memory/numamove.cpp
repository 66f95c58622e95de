// numamove: pages that NUMA balancing moves to the node of the task that uses them.
#include "memory/numamove.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "numamove.skel.h"

using namespace coretap;
using Sums = numamove_sums;

namespace {

constexpr std::string_view kIsolation =
    "this kernel has no tracepoint at the start of a migration: times include the search for free "
    "memory on the other node";

// If no migration was timed, the time is unknown, not 0.
Value time_ns(const Sums& s) { return value_if(!s.migrations || s.timed, s.time_ns); }

}  // namespace

TOOL(numamove) {
  return {
      .name = "numamove",
      .summary = "pages that NUMA balancing migrates, and the time it takes",
      .description =
          "For each interval: how often automatic NUMA balancing (kernel.numa_balancing) migrated "
          "memory to the node of the task that used it, the total time that these tasks were held "
          "up, the pages that were moved, and the pages that could not be moved. A huge page "
          "counts as the number of its base pages. Times are summed in nanoseconds: most "
          "migrations take some microseconds.\n\n"
          "Pages that move_pages(2), migrate_pages(2), memory policies or compaction move are not "
          "counted; nor are pages that were not even isolated because the other node has no free "
          "memory. A machine with one node has nothing to migrate.\n\n"
          "Filters apply to the task that used the memory and that the migration holds up.",
      .overhead = "two hooks per migration, no output per event",
      .examples = {{"numamove", "a line per second"},
                   {"numamove 5 12", "a minute, every five seconds"},
                   {"numamove -p 181", "what process 181 waits for"},
                   {"numamove --json -- ./benchmark", "one command, for a script"}},
      .questions = {{"Does NUMA balancing hold programs up?", "numamove"},
                    {"Are pages moved from node to node all the time?", "numamove 5 12"}},
      .differs = {{Difference::libbpf_tools,
                   "Times are summed in nanoseconds. There, each migration is first truncated to "
                   "milliseconds, and most count as 0. PAGES and FAILED are additional columns."}},
      .object = skeleton<numamove_bpf>(),
      .positionals = shared::interval_count(1),
      .options = {shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup()},
      .hooks = {{"start of a migration",
                 {{{progs::on_start}},
                  {.programs = {progs::on_misplaced}, .caveat = kIsolation},
                  {.programs = {progs::on_misplaced_kprobe}, .caveat = kIsolation}},
                 {},
                 "the time of migrations is not known"},
                {"migration",
                 {{{progs::on_end}, {has_enumerator("migrate_reason", "MR_NUMA_MISPLACED")}}}},
                // Added in 5.14, in the series that moved huge pages to the common migration path.
                {"migration of huge pages",
                 {{{}, {has_field("vm_fault", "orig_pmd")}},
                  {{progs::on_huge_start, progs::on_huge_end}}},
                 {},
                 "migrations of huge pages are not seen"}},
      .report = sums<Sums>(maps::migrations_cpus,
                           {field<&Sums::migrations>("migrations", "NUMA_migrations",
                                                     as::wide(as::number, 15), "migrations"),
                            derived<Sums, time_ns>("time_ns", "NUMA_migrations_ms",
                                                   as::wide(as::precise(as::milliseconds, 3), 18),
                                                   "total time in them")
                                .counter(),
                            field<&Sums::moved>("moved_pages", "PAGES", as::number, "pages moved"),
                            field<&Sums::failed>("failed_pages", "FAILED", as::pages,
                                                 "pages that could not be moved"),
                            field<&Sums::timed>("timed_migrations", "TIMED", as::number,
                                                "migrations that were timed")
                                .with("json")})
                    .always_timed(),
      .announce = "Tracing migrations by NUMA balancing",
  };
}
