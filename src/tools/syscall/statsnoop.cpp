// statsnoop: calls of the stat family, with their paths.
#include "syscall/statsnoop.h"

#include <fcntl.h>

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "statsnoop.skel.h"

using namespace coretap;
using Event = statsnoop_event;
using Rodata = rodata_of<statsnoop_bpf>;

namespace {

constexpr std::string_view kCalls[] = {"stat",  "lstat", "statfs", "newfstatat",
                                       "statx", "fstat", "fstatfs"};
static_assert(std::size(kCalls) == STATSNOOP_CALLS);

std::int64_t result(const Event& e) { return e.ret < 0 ? -1 : e.ret; }
std::int64_t error_number(const Event& e) { return e.ret < 0 ? -e.ret : 0; }

Value path(const Event& e) {
  if (e.what & STATSNOOP_FILE)
    return file_name(e.mode, e.inode, file_path(text_of(e, e.path), e.path_kind));
  if (!(e.what & STATSNOOP_GIVEN)) return {};
  return std::string(text_of(e, e.path)) + (e.what & STATSNOOP_CUT ? "..." : "");
}

bool incomplete(const Event& e) {
  return e.what & STATSNOOP_CUT || (e.what & STATSNOOP_FILE && e.path_kind == PATH_KIND_CUT);
}

Value directory(const Event& e) { return value_if(e.dfd != AT_FDCWD, e.dfd); }

}  // namespace

TOOL(statsnoop) {
  return {
      .name = "statsnoop",
      .summary = "files queried with stat, by whom, and with what result",
      .description =
          "One line per call to stat, lstat, fstat, newfstatat, statx, statfs and fstatfs when it "
          "returns, with 0 or -1 in RET and the error in ERR. PATH is what the program passed: '-' "
          "if its memory could not be read, with '...' if it is longer than 4095 bytes. For calls "
          "with a descriptor it is the path of its file as the process sees it.\n\n"
          "Not seen: calls through io_uring, and calls by 32-bit programs on a 64-bit kernel.",
      .overhead =
          "two hooks per call, well below a microsecond; a small cost on every other system call, "
          "because the kernel then takes its slow path",
      .examples = {{"statsnoop", "all calls"},
                   {"statsnoop -x", "only failures: missing files, lack of permission"},
                   {"statsnoop -ts -p 181", "with time and name of the call, of one process"},
                   {"statsnoop -- git status", "files that a command queries"}},
      .questions = {{"Which files does a program look for?", "statsnoop -x -p 1234"},
                    {"Which process calls stat all the time?", "statsnoop"}},
      .differs = {{Difference::both,
                   "Calls with a descriptor (fstat, fstatfs, an empty path) show the path of its "
                   "file, read during the call."},
                  {Difference::both, "ERR is the name of the error. There it is its number."},
                  {Difference::bcc, "RET is the result of the call; there the column is FD."}},
      .object = skeleton<statsnoop_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = {flag('x', "failed", "only calls that failed", setting(&Rodata::failed_only)),
                  flag('s', "sysname", "print the name of the call"), shared::timestamp('t'),
                  shared::pid(), shared::tid(0), shared::uid(), shared::comm(), shared::name('n'),
                  shared::cgroup()},
      .hooks = {{"results", {{{progs::on_exit}}}},
                {"newfstatat", {{{progs::on_newfstatat}}}},
                {"fstat", {{{progs::on_newfstat}}}},
                {"statx", {{{progs::on_statx}}}},
                {"statfs", {{{progs::on_statfs}}}},
                {"fstatfs", {{{progs::on_fstatfs}}}},
                {"stat", {{{progs::on_newstat}}}, {}, "calls of stat are not seen"},
                {"lstat", {{{progs::on_newlstat}}}, {}, "calls of lstat are not seen"}},
      .report = events<Event>(
                    {who<&Event::who>(id::pid, id::comm, id::tid),
                     derived<Event, result>("ret", "RET", as::wide(as::small, 4),
                                            "what the call returned; -1: it failed"),
                     failure<&Event::ret>("error by name; null: it succeeded").with("json"),
                     derived<Event, error_number>("errno", "ERR", as::error,
                                                  "error of the call; 0: it succeeded")
                         .in_text(),
                     field<&Event::latency_ns>("latency_ns", "LAT(us)", as::microseconds,
                                               "time of the call")
                         .with("json"),
                     named<&Event::call, kCalls>("call", "SYSCALL", as::text, "system call")
                         .with("sysname"),
                     derived<Event, directory>("dirfd", "DIRFD", as::small,
                                               "descriptor that is queried, or that the path is "
                                               "relative to")
                         .with("json"),
                     derived<Event, incomplete>("incomplete", "CUT", as::small,
                                                "a part of the path is missing")
                         .with("json"),
                     who<&Event::who>(id::uid.with("json"), id::cgroup),
                     derived<Event, path>("path", "PATH", as::rest, "path")})
                    .timed_at_begin()
                    .high_rate(),
      .announce = "Tracing calls of the stat family",
  };
}
