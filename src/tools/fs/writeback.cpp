// writeback: writeback of dirty pages: the time, reason, number and duration.
#include "fs/writeback.h"

#include "coretap/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "writeback.skel.h"

using namespace coretap;
using Opt = rodata_of<writeback_bpf>;
using Event = writeback_event;
using Key = throttle_key;
using Sums = throttle_sums;
using Line = Row<Key, Sums>;

namespace {

/// File systems without a disk have only a name.
template <class Record>
Value device_of(const Record& r) {
  return r.disk ? Value(std::uint64_t{r.disk}) : Value(text_in(r.device));
}

constexpr auto kDevice = as::wide(as::disk, -12);
constexpr std::string_view kDeviceDoc = "disk, or the kernel's name for the device";

#define REASON_CHOICE(name, word) {word, WRITEBACK_##name},

}  // namespace

TOOL(writeback) {
  return {
      .name = "writeback",
      .summary = "writeback of dirty pages: device, pages, reason and time",
      .description =
          "One line for each work item of a flusher thread when it ends: the device, the pages "
          "that were written, the reason, and the time that it took. Reasons are those of the "
          "kernel: background (there are more dirty pages than vm.dirty_background_ratio allows), "
          "periodic (pages are older than vm.dirty_expire_centisecs), sync (sync, syncfs, "
          "unmounting), vmscan (memory is short), fs_free_space, foreign_flush (of another "
          "cgroup), and so on. COMM and PID are the task that requested it and waits or may wait; "
          "a dash: the kernel started it, or sync(2) only woke the flusher. Task filters apply to "
          "that task.\n\n"
          "DEVICE is the disk, or the kernel's name for a file system that is on none or on "
          "several. A work item may write nothing. Not seen: what fsync, msync and direct I/O "
          "write, because the calling task does that itself (see syncsnoop), and work in progress "
          "when tracing ends.\n\n"
          "With --throttle, one table at the end: processes that dirtied pages of a device faster "
          "than it can write them, so that the kernel put them to sleep in their writes "
          "(balance_dirty_pages). TOTAL(ms) is the sleep time that the kernel set, in multiples of "
          "its tick; a task can run slightly earlier, or later if no CPU is free. io_uring first "
          "tries a write without sleeping: if the kernel requests a sleep then, it counts, and so "
          "does the sleep of the thread that does the write instead. Tasks that wait for the disk "
          "in other ways (fsync, reads) are not in the table.",
      .overhead =
          "a few hooks per work item of a flusher, which is rare; none per page; with --throttle, "
          "one hook each time the kernel checks whether a writer has to sleep",
      .examples = {{"writeback", "all writeback until Ctrl-C"},
                   {"writeback -d sda -m 100 60",
                    "on sda, what takes 100 ms or more, for a minute"},
                   {"writeback -r background -r vmscan", "for these two reasons"},
                   {"writeback --throttle 10",
                    "which writers the kernel slows down, for 10 seconds"},
                   {"writeback -- sync -f /home", "writeback that a command requests"}},
      .questions = {{"When and why does the kernel write dirty pages to the disk?", "writeback"},
                    {"Does writeback take long?", "writeback -m 100"},
                    {"Are writers slowed down because the disk does not keep up?",
                     "writeback --throttle 10"}},
      .object = skeleton<writeback_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined(
          {{flag(0, "throttle",
                 "the tasks that the kernel slows down when they write, in a table")},
           belonging_to("!throttle",
                        {choice('r', "reason", "REASON", "only for this reason; any of several",
                                {WRITEBACK_REASONS(REASON_CHOICE)},
                                [](Config& c, std::uint64_t reason) {
                                  c.add_bit(setting(&Opt::wanted_reasons), reason);
                                })
                             .adding_up(),
                         number('m', "min", "MS", "only what took at least this many milliseconds",
                                setting(&Opt::min_ns), kMillisecond)}),
           {shared::disk(), shared::name('n')},
           shared::task_filters(),
           belonging_to("throttle", {shared::top(), shared::sort('s'), shared::max_keys()})}),
      .hooks = {{"works", {{{progs::on_start, progs::on_written}}}, "!throttle"},
                {"ends of works", {{{progs::on_exec, progs::on_done}}}, "!throttle"},
                {"who asks", {{{progs::on_queue}}}, "!throttle"},
                {"sleeps of writers", {{{progs::on_throttle}}}, "throttle"}},
      .report =
          events<Event>(
              {derived<Event, device_of<Event>>("device", "DEVICE", kDevice, kDeviceDoc).bounded(),
               field<&Event::pages>("written_pages", "PAGES", as::wide(as::number, -8),
                                    "pages written"),
               field<&Event::reason>("reason", "REASON",
                                     as::enumerator("wb_reason", "WB_REASON_", -16), "why"),
               field<&Event::latency_ns>("latency_ns", "ms", as::precise(as::milliseconds, 3),
                                         "time that it took"),
               owner<&Event::who>(id::comm, id::pid, id::tid, id::uid.with("json"), id::cgroup)})
              .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .other_reports =
          {{"throttle",
            table<Key, Sums>(
                maps::throttled,
                {derived<Line, [](const Line& l) { return device_of(l.key); }>("device", "DEVICE",
                                                                               kDevice, kDeviceDoc)
                     .bounded(),
                 of_value<Line, &Sums::sleeps>("sleeps", "SLEEPS", as::wide(as::number, 8),
                                               "times that the kernel put it to sleep"),
                 of_value<Line, &Sums::total_ns>("total_ns", "TOTAL(ms)", as::milliseconds,
                                                 "time of all sleeps together"),
                 of_value<Line, &Sums::longest>("max_ns", "MAX(ms)", as::milliseconds,
                                                "the longest sleep"),
                 of_key<Line, &Key::comm>("comm", "COMM", as::comm, "command name of the process"),
                 of_key<Line, &Key::pid>("pid", "PID", as::pid, "process")},
                "total_ns")
                .with_largest<&Sums::longest>()}},
      .announce = "Tracing writeback",
  };
}
