// writeback: when dirty pages are written back, why, how many and for how long.
#include "fs/writeback.h"

#include <fmt/format.h>

#include "cli/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "writeback.skel.h"

using namespace coretap;
using Opt = rodata_of<writeback_bpf>;
using Event = writeback_event;

namespace {

#define REASON_WORD(name, word) word,
constexpr std::string_view kReasons[] = {WRITEBACK_REASONS(REASON_WORD)};

Result<void> want_reason(Config& c, std::string_view text) {
  for (std::size_t i = 0; i < std::size(kReasons); i++) {
    if (text != kReasons[i]) continue;
    auto& wanted = c.own<std::uint64_t>();
    wanted |= std::uint64_t{1} << i;
    c.set(setting(&Opt::wanted_reasons), wanted);
    return {};
  }
  return Error{
      fmt::format("--reason: '{}' is no reason", text), {}, "sync or background, say", kUsage};
}

Option reason() {
  auto option = one_of(
      value('r', "reason", "REASON", "only for this reason; any of several", want_reason), [] {
        std::vector<Completion> all;
        for (auto word : kReasons) all.push_back({std::string(word)});
        return all;
      });
  option.adds_up = true;
  return option;
}

/// File systems without a disk of their own have a name only.
Value device(const Event& e) {
  if (e.disk) return std::uint64_t{e.disk};
  return std::string(e.device, strnlen(e.device, sizeof e.device));
}

}  // namespace

TOOL(writeback) {
  return {
      .name = "writeback",
      .summary = "writeback of dirty pages: device, pages, reason and time",
      .description =
          "One line for each work of a flusher thread when it ends: how many pages of which device "
          "it wrote, for what reason, and how long that took. Reasons are those of the kernel: "
          "background (there are more dirty pages than vm.dirty_background_ratio allows), periodic "
          "(pages are older than vm.dirty_expire_centisecs), sync (sync, syncfs, unmounting), "
          "vmscan (memory is short), fs_free_space, foreign_flush (of another cgroup), and so on. "
          "COMM and PID are the task that asked for it and waits or may wait; a dash: the kernel "
          "did it by itself, or sync(2) only woke the flusher. Filters by task ask about that task.\n\n"
          "DEVICE is the disk, or what the kernel calls a file system that is on none or on "
          "several. A work may write nothing. Not seen: what fsync, msync and direct I/O write, as "
          "the calling task does that itself (syncsnoop), and work that goes on when tracing ends.",
      .overhead = "a few hooks per work of a flusher, which is rare; none per page",
      .examples = {{"writeback", "all writeback until Ctrl-C"},
                   {"writeback -d sda -m 100 60", "on sda, what takes 100 ms or more, a minute"},
                   {"writeback -r background -r vmscan", "for these two reasons"},
                   {"writeback -- sync -f /home", "what a command asks for"}},
      .questions = {{"When and why does the kernel write dirty pages to the disk?", "writeback"},
                    {"Does writeback take long?", "writeback -m 100"}},
      .object = skeleton<writeback_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined({{shared::disk(), reason(),
                          number('m', "min", "MS", "only what took at least this many milliseconds",
                                 setting(&Opt::min_ns), kMillisecond),
                          shared::name('n')},
                         shared::task_filters()}),
      .hooks = {{"works", {{{"on_start", "on_written"}}}},
                {"ends of works", {{{"on_exec", "on_done"}}}},
                {"who asks", {{{"on_queue"}}}}},
      .report =
          events<Event>(
              {derived<Event, device>("device", "DEVICE", as::wide(as::disk, -12),
                                      "disk, or the kernel's name of the device"),
               field<&Event::pages>("written_pages", "PAGES", as::wide(as::number, -8),
                                    "pages written"),
               field<&Event::reason>("reason", "REASON",
                                     as::enumerator("wb_reason", "WB_REASON_", -16), "why"),
               field<&Event::latency_ns>("latency_ns", "ms", as::precise(as::milliseconds, 3),
                                         "time of it"),
               owner<&Event::who>(id::comm, id::pid, id::tid, id::uid.with("json"), id::cgroup)})
              .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .announce = "Tracing writeback",
  };
}
