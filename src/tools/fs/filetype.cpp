// filetype: reads and writes by process and type of file.
#include "fs/filetype.h"

#include <sys/stat.h>

#include "coretap/file_counts.hpp"
#include "coretap/ring_io.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "filetype.skel.h"

using namespace coretap;
using Key = filetype_key;
using Line = Row<Key, file_counts>;

namespace {

std::string type(const Line& l) {
  switch (l.key.mode) {
    case S_IFREG:
      return "regular";
    case S_IFDIR:
      return "directory";
    case S_IFLNK:
      return "link";
    case S_IFBLK:
      return "block";
    case S_IFCHR:
      return "character";
    case S_IFIFO:
      return "fifo";
    case S_IFSOCK:
      return "socket";
    default:
      return "none";
  }
}

}  // namespace

TOOL(filetype) {
  static const std::string kDescription =
      "System calls that read or write any file descriptor, by process and by the type of the "
      "file, with the bytes that they returned: read, write, their p and v forms, sendfile, "
      "splice, copy_file_range. The types are regular, directory, link, block, character, fifo "
      "(pipes, too), socket, and none: files without a type, such as those of eventfd, timerfd and "
      "perf events.\n\n"
      "Calls that fail do not count, nor do socket-only calls, such as recvmsg.\n\n" +
      std::string(kFileIoSeen);
  return {
      .name = "filetype",
      .summary = "reads and writes by process and type of file",
      .description = kDescription,
      .overhead =
          "a hook on every system call and io_uring request, which adds some tens of nanoseconds "
          "to calls that do not read or write files",
      .examples = {{"filetype", "until Ctrl-C"},
                   {"filetype -T 5 12", "a minute, every five seconds, with the time"},
                   {"filetype -r 5 -s writes", "the five with the most writes"},
                   {"filetype -p 181", "of process 181"}},
      .questions = {{"Does a program use files, pipes or sockets?", "filetype -p 181"}},
      .object = skeleton<filetype_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined({{shared::timestamp(), shared::top('r'), shared::sort()},
                         shared::task_filters(),
                         {shared::max_keys()}}),
      .hooks = {{"system calls", {{.programs = {progs::on_exit}, .caveat = kFileIoNotSeen}}},
                ring_io_hook()},
      .report =
          table<Key, file_counts>(
              maps::types,
              {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process"),
               of_key<Line, &Key::comm>("comm", "COMM", as::comm, "command name of the thread"),
               derived<Line, type>("type_of_file", "TYPE", as::wide(as::text, -10),
                                   "regular, directory, link, block, character, fifo, socket, or "
                                   "none")
                   .bounded(),
               counts_of_files<Line>()},
              "bytes,reads,writes")
              .counted_by(2)
              .sorted_also_by(words_of_peers_for_counts())
              .timed_with("timestamp"),
      .announce = "Tracing reads and writes by type of file",
  };
}
