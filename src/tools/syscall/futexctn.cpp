// futexctn: futex waits, by lock and by waiting code.
#include "syscall/futexctn.h"

#include <numeric>

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "futexctn.skel.h"

using namespace coretap;
using Opt = rodata_of<futexctn_bpf>;
using Key = futexctn_key;
using Sums = futexctn_sums;
using Line = Row<Key, Sums>;

namespace {

// The operations of futex(2) that wait, by number.
constexpr std::string_view kOps[FUTEX_OPS] = {"wait",    "",
                                              "",        "",
                                              "",        "",
                                              "lock_pi", "",
                                              "",        "wait_bitset",
                                              "",        "wait_requeue_pi",
                                              "",        "lock_pi2",
                                              "waitv",   "futex_wait"};
constexpr std::string_view kResults[FUTEX_RESULTS] = {"woken", "timeout", "interrupted", "changed",
                                                      "failed"};

std::uint64_t count(const Line& l) {
  return std::accumulate(std::begin(l.value.results), std::end(l.value.results), std::uint64_t{});
}
std::uint64_t average(const Line& l) {
  return l.value.total_ns / std::max(count(l), std::uint64_t{1});
}

}  // namespace

TOOL(futexctn) {
  return {
      .name = "futexctn",
      .summary = "waits for futexes, by lock and by the user stack that waits",
      .description =
          "What programs wait for in futex(2) and its relatives: mutexes, condition variables, "
          "semaphores, thread joins. A histogram of the waits for each process, futex, operation, "
          "result and user stack; with --summary a line for each process, futex and operation. A "
          "free lock is taken without a system call: everything shown here was contended, or "
          "waited for on purpose.\n\n"
          "All operations that wait count: FUTEX_WAIT, WAIT_BITSET, LOCK_PI, LOCK_PI2, "
          "WAIT_REQUEUE_PI, futex_waitv(2) and futex_wait(2); a wait for several futexes counts "
          "for the one that ended it, else for the first. All results count, too: woken, timeout, "
          "interrupted by a signal, changed (the value had already changed, and there was no "
          "wait), failed. After a signal without a handler a wait continues as another one.\n\n"
          "A wait that has not ended is not counted yet; loads shows where a program hangs, and so "
          "do, with stacks, traceloop and deadlock. Calls by 32-bit programs on x86 are not seen.",
      .overhead =
          "two hooks per futex call; a user stack for each wait that ends, none with --summary; "
          "counted in the kernel",
      .examples = {{"futexctn", "histograms by stack until Ctrl-C"},
                   {"futexctn -s 1", "a line for each lock, each second"},
                   {"futexctn -p 185 -m 10 1", "process 185 for ten seconds, in milliseconds"},
                   {"futexctn -l 0x8187bb8", "one lock"},
                   {"futexctn -s --per-thread -p 185", "which thread waits for which lock"}},
      .questions = {{"Which locks of this program are contended?", "futexctn -s -p 185 10 1"},
                    {"Which code waits for a mutex, and how long?", "futexctn -p 185 10 1"}},
      .differs = {{Difference::libbpf_tools,
                   "All operations that wait count, with all results. There, only a woken "
                   "FUTEX_WAIT does. Locks are summed by process; --per-thread sums by thread, as "
                   "there."}},
      .object = skeleton<futexctn_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined(
          {{hex_address('l', "lock", "ADDR", "only the futex at this address",
                        "the tool shows it: 0x7f3c5c000b60", setting(&Opt::only_lock)),
            flag('s', "summary", "a line for each lock, without stacks", setting(&Opt::summary)),
            flag(0, "per-thread", "by thread rather than by process", setting(&Opt::by_thread)),
            belonging_to("!summary", {flag('e', "extension",
                                           "print average, total and count below each histogram")})
                .front(),
            shared::milliseconds(), shared::timestamp(), shared::top(), shared::sort(0),
            shared::max_keys(), shared::stack_depth(), shared::stack_storage(), shared::unwind(),
            shared::unwind_memory()},
           shared::task_filters()}),
      .hooks =
          {{"futex calls", {{{progs::on_futex, progs::on_end}}}},
           {"futex_waitv calls",
            {{{progs::on_futex_waitv}}},
            {},
            "this kernel has no futex_waitv(2)"},
           {"futex_wait calls", {{{progs::on_futex_wait}}}, {}, "this kernel has no futex_wait(2)"},
           {"waits that go on after a signal", {{{progs::on_restart}}}}},
      .report =
          histogram<Key>(maps::waits, "waits",
                         {field<&Key::comm>("comm", "comm", as::comm, "command name"),
                          field<&Key::pid>("pid", "pid", as::pid, "process"),
                          field<&Key::tid>("tid", "tid", as::pid, "thread").with("per-thread"),
                          field<&Key::lock>("lock", "lock", as::pointer, "address of the futex"),
                          named<&Key::op, kOps>("op", "op", as::text, "operation that waits"),
                          named<&Key::result, kResults>(
                              "outcome", "outcome", as::text,
                              "how waits ended: woken, timeout, interrupted, changed or failed"),
                          user_stack_of<Row<Key, hist>, &Key::user_stack, &Key::pid>()},
                         "extension"),
      .other_reports =
          {{"summary",
            table<Key, Sums>(
                maps::locks,
                {of_key<Line, &Key::comm>("comm", "COMM", as::comm, "command name"),
                 of_key<Line, &Key::pid>("pid", "PID", as::pid, "process"),
                 of_key<Line, &Key::tid>("tid", "TID", as::pid, "thread").only("per-thread"),
                 of_key<Line, &Key::lock>("lock", "LOCK", as::pointer, "address of the futex"),
                 named_key<Line, &Key::op, kOps>("op", "OP", as::wide(as::text, -15),
                                                 "operation that waits"),
                 derived<Line, count>("count", "COUNT", as::pages, "waits").counter(),
                 derived<Line, average>("average_ns", "AVG(us)", as::microseconds, "average wait"),
                 of_value<Line, &Sums::longest>("max_ns", "MAX(us)", as::wide(as::microseconds, 12),
                                                "the longest wait of the interval"),
                 of_value<Line, &Sums::total_ns>("total_ns", "TOTAL(us)",
                                                 as::wide(as::microseconds, 14),
                                                 "total time of all waits"),
                 of_element<Line, &Sums::results, FUTEX_TIMED_OUT>(
                     "timeouts", "TIMEOUT", as::wide(as::number, 7), "waits that timed out"),
                 of_element<Line, &Sums::results, FUTEX_INTERRUPTED>(
                     "interrupted", "INTR", as::small, "waits that a signal ended"),
                 of_element<Line, &Sums::results, FUTEX_CHANGED>(
                     "changed", "CHANGED", as::wide(as::number, 7),
                     "calls without a wait: the value had changed"),
                 of_element<Line, &Sums::results, FUTEX_FAILED>(
                     "failed", "FAILED", as::wide(as::number, 6), "other errors")},
                "total_ns,count")
                .with_largest<&Sums::longest>()
                .counted_by(FUTEX_RESULTS)
                .timed_with("timestamp")}},
      .announce = "Tracing waits for futexes",
      .exclusive = {{"summary", "milliseconds"}},
  };
}
