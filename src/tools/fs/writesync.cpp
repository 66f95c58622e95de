// writesync: writes by process, file and synchronous mode.
#include "fs/writesync.h"

#include "coretap/files.hpp"
#include "coretap/ring_io.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "writesync.skel.h"

using namespace coretap;
using Opt = rodata_of<writesync_bpf>;
using Key = writesync_key;
using Counts = writesync_counts;
using Line = Row<Key, Counts>;

namespace {

std::uint64_t writes(const Line& l) { return l.value.sync + l.value.dsync + l.value.regular; }

}  // namespace

TOOL(writesync) {
  static const std::string kDescription =
      "System calls that write to regular files, by process and file, and by whether they return "
      "only when the disk has the data. SYNC counts those that wait for the data and all of the "
      "file's metadata: the file was opened with O_SYNC, or the call has RWF_SYNC (pwritev2). "
      "DSYNC counts those that wait for the data and the metadata needed to read it: O_DSYNC, "
      "RWF_DSYNC, a mount with the option sync, or chattr +S. REGULAR counts all others. DIRECT "
      "counts those of all three whose file was opened with O_DIRECT.\n\n"
      "A program that calls fsync after its writes waits as well: syncsnoop shows these calls. "
      "Calls that fail do not count.\n\n" +
      std::string(kFileIoSeen);
  return {
      .name = "writesync",
      .summary = "writes by process, file and synchrony",
      .description = kDescription,
      .overhead =
          "a hook on every system call and io_uring request, which adds some tens of nanoseconds "
          "to calls that do not read or write files",
      .examples = {{"writesync", "until Ctrl-C"},
                   {"writesync 5 12", "a minute, every five seconds"},
                   {"writesync -p 181", "of process 181"},
                   {"writesync -a", "block devices too, and everything else that can be written"}},
      .questions = {{"Does a program wait for the disk at each write?", "writesync -p 181"}},
      .object = skeleton<writesync_bpf>(),
      .positionals = shared::interval_count(),
      .options =
          joined({{shared::all_files<Opt>(), shared::timestamp(), shared::top('r'), shared::sort()},
                  shared::task_filters(),
                  {shared::max_keys()}}),
      .hooks = {{"system calls", {{{progs::on_exit}}}}, ring_io_hook()},
      .report =
          table<Key, Counts>(
              maps::files,
              {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process"),
               of_key<Line, &Key::comm>("comm", "COMM", as::comm, "command name of the thread"),
               of_value<Line, &Counts::sync>("sync_writes", "SYNC", as::wide(as::number, 7),
                                             "writes that wait for data and metadata"),
               of_value<Line, &Counts::dsync>("dsync_writes", "DSYNC", as::wide(as::number, 7),
                                              "writes that wait for data"),
               of_value<Line, &Counts::regular>("regular_writes", "REGULAR",
                                                as::wide(as::number, 7), "writes that do not wait"),
               of_value<Line, &Counts::direct>("direct_writes", "DIRECT", as::wide(as::number, 7),
                                               "those of all writes that bypass the page cache"),
               derived<Line, writes>("writes", "WRITES", as::number, "calls that wrote")
                   .counter()
                   .with("json"),
               of_value<Line, &Counts::bytes>("write_bytes", "W_Kb", as::wide(as::kilobytes, 7),
                                              "bytes written"),
               identity_of_file<Line>(),
               derived<Line, file_of_row<Line>>("file", "FILE", as::rest, "path of the file")
                   .key_part()},
              "sync_writes,dsync_writes,writes")
              .counted_by(3)
              .timed_with("timestamp"),
      .announce = "Tracing writes by their synchrony",
  };
}
