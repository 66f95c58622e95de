// filetop: the files that are read and written most.
#include "fs/filetop.h"

#include "coretap/config.hpp"
#include "coretap/file_counts.hpp"
#include "coretap/files.hpp"
#include "coretap/ring_io.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "filetop.skel.h"

using namespace coretap;
using Opt = rodata_of<filetop_bpf>;
using Key = filetop_key;
using Line = Row<Key, file_counts>;

namespace {

std::string type(const Line& l) { return file_type(l.key.mode); }
bool is_below_directory(const Line& l, const FieldContext& context) {
  auto* path = context.row_text(l.key);
  return context.config->places.directory.empty() || (path && context.config->wants_path(*path));
}

}  // namespace

TOOL(filetop) {
  static const std::string kDescription =
      "System calls that read or write files, by file and thread, with the bytes that they "
      "returned: read, write, their p and v forms, sendfile, splice, copy_file_range. T is R for a "
      "regular file, S for a socket, O for all others. FILE is the path as the process sees it. A "
      "file that is in no directory has the name that /proc/PID/fd gives it.\n\n"
      "Calls that fail do not count.\n\n" +
      std::string(kFileIoSeen);
  return {
      .name = "filetop",
      .summary = "reads and writes by file and thread, as a screen",
      .description = kDescription,
      .overhead =
          "a hook on every system call and io_uring request, which adds some tens of nanoseconds "
          "to calls that do not read or write files",
      .examples = {{"filetop", "redrawn every second; q quits"},
                   {"filetop -C 5 2", "two reports of five seconds, one after another"},
                   {"filetop -s reads -r 5", "the five with the most reads"},
                   {"filetop -a -p 181", "sockets and pipes too, of process 181"},
                   {"filetop -d /var/log", "only files below this directory"}},
      .questions = {{"Which files are read or written most?", "filetop"},
                    {"Which process writes to this directory?", "filetop -d /var/log -C 10"}},
      .other_names = {{"scread", "--read-only"}},
      .differs = {{Difference::both,
                   "Bytes are those that calls returned. Peers add up the requested sizes, even of "
                   "calls that fail, and trace two functions instead of all calls that read or "
                   "write files."},
                  {Difference::bcc,
                   "-d shows files at any depth below the directory. There it shows only files "
                   "directly in it."}},
      .object = skeleton<filetop_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined({shared::screen(),
                         shared::file_io<Opt>(),
                         {shared::directory('d')},
                         shared::task_filters(),
                         {shared::max_keys()}}),
      .hooks = {{"system calls", {{.programs = {progs::on_exit}, .caveat = kFileIoNotSeen}}},
                ring_io_hook()},
      .report =
          table<Key, file_counts>(
              maps::files,
              {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process").with("json"),
               of_key<Line, &Key::tid>("tid", "TID", as::pid, "thread"),
               of_key<Line, &Key::comm>("comm", "COMM", as::comm, "command name of the thread"),
               counts_of_files<Line>(),
               derived<Line, type>("file_type", "T", as::wide(as::text, -1), "type of the file")
                   .bounded(),
               identity_of_file<Line>(),
               derived<Line, file_of_row<Line>>("file", "FILE", as::rest, "path of the file")
                   .key_part()},
              "bytes,reads,writes", 20)
              .counted_by(2)
              .sorted_also_by(words_of_peers_for_counts())
              .only<Line, is_below_directory>()
              .on_screen(),
      .announce = "Tracing reads and writes of files",
  };
}
