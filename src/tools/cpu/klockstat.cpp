// klockstat: kernel locks, by the code that takes them: time waited for them, or held.
#include "cpu/klockstat.h"

#include "coretap/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "klockstat.skel.h"

using namespace coretap;
using Opt = rodata_of<klockstat_bpf>;
using Key = klockstat_key;
using Sums = klockstat_sums;
using Line = Row<Key, Sums>;

namespace {

std::string caller(const Line& l, const FieldContext& context) {
  auto frames = context.frames_of(l.key.stack, std::nullopt);
  return frames.empty() ? "[unknown]" : frames.front();
}

/// The names in `perf lock contention`.
std::string kind(const Line& l) {
  constexpr std::uint32_t kSpins = 1, kRead = 2, kWrite = 4, kRt = 8, kPercpu = 16, kMutex = 32;
  auto flags = l.key.flags;
  if (flags & kMutex) return "mutex";
  if (flags & kRt) return "rtmutex";
  std::string side = flags & kRead ? ":R" : flags & kWrite ? ":W" : "";
  if (flags & kPercpu) return "pcpu-sem" + side;
  if (side.empty()) return "spinlock";
  return (flags & kSpins ? "rwlock" : "rwsem") + side;
}

bool wanted_caller(const Line& l, const FieldContext& context) {
  return !context.config || caller(l, context).starts_with(context.config->text("caller"));
}

/// Both use the same counters, which exporters must distinguish.
std::string waits_word(const Line&) { return "waits"; }
std::string holds_word(const Line&) { return "holds"; }

template <std::string (*Word)(const Line&)>
Field measured() {
  return derived<Line, Word>("measured", "MEASURED", as::text, "waits or holds")
      .bounded()
      .with("json");
}

AggregateReport report_of(const Field& of, std::string_view count_doc,
                          const std::string_view (&titles)[3]) {
  return table<Key, Sums>(
             maps::times,
             {derived<Line, caller>("caller", "Caller", as::wide(as::text, -37),
                                    "function that took the lock, and where in it")
                  .capped(),
              of,
              of_key<Line, &Key::lock>("lock", "LOCK", as::pointer, "address of the lock")
                  .only("per-lock"),
              of_key<Line, &Key::tid>("tid", "Tid", as::pid, "thread").only("per-thread"),
              of_key<Line, &Key::comm>("comm", "Comm", as::comm, "its name").only("per-thread"),
              mean_of<Line, &Sums::total_ns, &Sums::count, true>("average_ns", titles[0],
                                                                 as::wide(as::microseconds, 14),
                                                                 "total divided by count"),
              of_value<Line, &Sums::count>("count", "Count", as::pages, count_doc),
              of_value<Line, &Sums::longest>("max_ns", titles[1], as::wide(as::microseconds, 14),
                                             "the longest of the interval"),
              of_value<Line, &Sums::total_ns>("total_ns", titles[2], as::wide(as::microseconds, 16),
                                              "their sum"),
              derived<Line, kind>("lock_type", "TYPE", as::wide(as::text, -10), "kind of lock")
                  .bounded(),
              kernel_stack_of<Line, &Key::stack>().with("stacks")},
             "max_ns,total_ns")
      .with_largest<&Sums::longest>()
      .timed_with("timestamp")
      .with_callers()
      .only<Line, wanted_caller>();
}

AggregateReport waits() {
  return report_of(measured<waits_word>(), "waits",
                   {"Avg Wait(us)", "Max Wait(us)", "Total Wait(us)"})
      .sorted_also_by({{"acq_max", "max_ns"},
                       {"acq_total", "total_ns"},
                       {"acq_count", "count"},
                       {"hld_max", "--holds --sort hld_max"},
                       {"hld_total", "--holds --sort hld_total"},
                       {"hld_count", "--holds --sort hld_count"}});
}

AggregateReport holds() {
  return report_of(measured<holds_word>(), "releases",
                   {"Avg Hold(us)", "Max Hold(us)", "Total Hold(us)"})
      .sorted_also_by({{"hld_max", "max_ns"},
                       {"hld_total", "total_ns"},
                       {"hld_count", "count"},
                       {"acq_max", "--sort acq_max without --holds"},
                       {"acq_total", "--sort acq_total without --holds"},
                       {"acq_count", "--sort acq_count without --holds"}});
}

}  // namespace

TOOL(klockstat) {
  return {
      .name = "klockstat",
      .summary = "waits for kernel locks by caller, or how long locks are held",
      .description =
          "Waits for the kernel's locks, by the code that waited and the kind of lock: mutexes, "
          "reader/writer semaphores, spinlocks, reader/writer spinlocks, per-CPU semaphores and "
          "real-time mutexes. Only contended acquisitions are traced and cost anything; for a "
          "spinlock the kernel reports only the waiters behind the first. If the kernel has no "
          "tracepoints for this (before 5.19), only waits for mutexes and reader/writer "
          "semaphores are seen.\n\n"
          "With --holds the tool instead shows how long mutexes and semaphores are held, by the "
          "code that took them. That needs a BPF program on each function that takes or releases "
          "one. If the kernel allows no such programs, only holds of mmap_lock are shown; TYPE "
          "is rwsem then, too.\n\n"
          "Filters by task apply to the task that waits for or takes the lock; in an interrupt, "
          "to the interrupted task.",
      .overhead =
          "two hooks and a kernel stack per wait. With --holds two hooks and a stack for each "
          "lock acquisition, many of which are not contended: a busy system slows down",
      .examples = {{"klockstat", "the waits until Ctrl-C"},
                   {"klockstat -n 10 -i 1", "the ten callers that waited longest, each second"},
                   {"klockstat -s 5 -p 181", "five frames of each caller; process 181"},
                   {"klockstat -c pipe_ -S acq_count",
                    "callers whose names start with pipe_, by "
                    "count"},
                   {"klockstat --holds -d 10", "how long locks are held"},
                   {"klockstat --per-lock", "by the address of the lock too"}},
      .questions = {{"Which kernel locks are contended?", "klockstat -d 10"},
                    {"Which kernel code holds locks for a long time?", "klockstat --holds -d 10"}},
      .differs =
          {{Difference::both,
            "Shows waits or, with --holds, holds. Peers show both together, which takes a "
            "program on each acquisition. An acquisition that did not have to wait is not "
            "a wait; peers count it. Times are numbers in microseconds. bcc has nanoseconds, "
            "libbpf-tools a unit behind each. The kind of lock is the last column."},
           {Difference::libbpf_tools,
            "-L takes the address of a lock, not a name. -s is the total number of frames."}},
      .object = skeleton<klockstat_bpf>(),
      .options = joined(
          {{flag(0, "holds", "how long locks are held, instead of waits"),
            free_text('c', "caller", "PREFIX", "only callers whose names start with PREFIX"),
            hex_address('L', "lock", "ADDR", "only the lock at this address",
                        "--per-lock shows it: 0xffff8881003d8a00", setting(&Opt::only_lock)),
            shared::top('n').also("locks"),
            number('s', "stacks", "FRAMES", "frames of each caller that are compared and shown",
                   Range{.least = 1, .most = 100}, setting(&Opt::caller_frames)),
            shared::sort('S'), shared::duration('d'), shared::interval(),
            flag('R', "reset", "each report covers only its interval, as without it"),
            shared::timestamp(), flag('P', "per-thread", "by thread too", setting(&Opt::by_thread)),
            flag(0, "per-lock", "by the address of the lock too", setting(&Opt::by_lock)),
            shared::max_keys(), shared::stack_storage()},
           {shared::pid(), shared::tid(), shared::uid(0), shared::comm(), shared::cgroup(0)}}),
      .other_meanings = {{'i', "interval",
                          "each report covers its interval; those of bcc and libbpf-tools add up "
                          "unless -R is given (with -R: without this note)",
                          "reset"}},
      .hooks = {{"waits",
                 {{{progs::on_begin, progs::on_end}},
                  {{KLOCK_WAITS(KLOCK_ENTRIES) KLOCK_WAITS(KLOCK_RETURNS)},
                   {},
                   "only waits for mutexes and reader/writer semaphores are seen"}},
                 "!holds"},
                {"holds",
                 {{{KLOCK_TAKES(KLOCK_RETURNS) KLOCK_RELEASES(KLOCK_ENTRIES)
                        progs::on_downgrade_write_return}},
                  {{progs::on_mmap_acquired, progs::on_mmap_released},
                   {},
                   "only holds of mmap_lock are seen"}},
                 "holds"}},
      .maps = {{maps::held, MapSize::objects, "holds"}},
      .report = waits(),
      .other_reports = {{"holds", holds()}},
      .announce = "Tracing kernel locks",
  };
}
