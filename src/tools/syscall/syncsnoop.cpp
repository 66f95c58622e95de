// syncsnoop: system calls that flush files or file systems.
#include "syscall/syncsnoop.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "syncsnoop.skel.h"

using namespace coretap;
using Event = syncsnoop_event;
using Rodata = rodata_of<syncsnoop_bpf>;

namespace {

constexpr std::string_view kCalls[] = {"sync",      "msync",           "fsync",
                                       "fdatasync", "sync_file_range", "syncfs"};
static_assert(std::size(kCalls) == SYNCSNOOP_CALLS);

Value file(const Event& e) {
  if (!e.mode) return {};
  return file_name(e.mode, e.inode, file_path(text_of(e, e.path), e.path_kind));
}

}  // namespace

TOOL(syncsnoop) {
  return {
      .name = "syncsnoop",
      .summary = "calls that flush files or file systems, and how long they take",
      .description =
          "One line per call to sync, syncfs, fsync, fdatasync, msync and sync_file_range when it "
          "returns: the caller, how long it took, and the path of the descriptor's file as the "
          "process sees it (for syncfs, the file system that has this file). sync and msync have "
          "none.\n\n"
          "Not seen: flushes through io_uring and AIO, through files opened with O_SYNC or "
          "O_DSYNC, by 32-bit programs on a 64-bit kernel, and by the kernel itself.",
      .overhead =
          "two hooks per such call; a small cost on every other system call, because the kernel "
          "then takes its slow path",
      .examples = {{"syncsnoop", "all calls until Ctrl-C"},
                   {"syncsnoop -m 10", "only those that took 10 ms or more"},
                   {"syncsnoop -T -p 181", "process 181, with the time of day"},
                   {"syncsnoop -- git commit -a", "what a command flushes"}},
      .questions = {{"Which process flushes files to the disk?", "syncsnoop"},
                    {"Does a program wait for fsync?", "syncsnoop -m 1 -p 1234"}},
      .differs = {{Difference::both,
                   "A line is printed when the call returns, with the process, the time that the "
                   "call took, its error and its file. Peers print the time of its start and its "
                   "name, after the command name in libbpf-tools, as here; bcc has no command "
                   "name."}},
      .object = skeleton<syncsnoop_bpf>(),
      .positionals = {shared::duration_argument()},
      .options =
          joined({{shared::timestamp(), shared::name('n'),
                   number('m', "min", "MS", "only calls that took at least this many milliseconds",
                          setting(&Rodata::min_ns), kMillisecond)},
                  shared::task_filters()}),
      .hooks = {{"results", {{{progs::on_exit}}}},
                {"fsync", {{{progs::on_fsync}}}},
                {"fdatasync", {{{progs::on_fdatasync}}}},
                {"sync", {{{progs::on_sync}}}},
                {"syncfs", {{{progs::on_syncfs}}}},
                {"msync", {{{progs::on_msync}}}},
                {"sync_file_range", {{{progs::on_sync_file_range}}}}},
      .report =
          events<Event>(
              {who<&Event::who>(id::comm, id::pid, id::tid),
               named<&Event::call, kCalls>("call", "CALL", as::wide(as::text, -15), "the call"),
               field<&Event::latency_ns>("latency_ns", "LAT(ms)", as::precise(as::milliseconds, 3),
                                         "time of the call"),
               failure<&Event::ret>("error of the call; null: it succeeded"),
               who<&Event::who>(id::uid.with("json"), id::cgroup),
               derived<Event, file>("file", "FILE", as::rest, "path of the file")})
              .timed({{TimeColumn::since_start, "TIME(s)", 11, "!timestamp"},
                      {TimeColumn::wall, "TIME", 12, "timestamp"}})
              .columns({{"comm,call"}}),
      .announce = "Tracing calls that flush files",
  };
}
