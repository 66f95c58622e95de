// vfssize: sizes of reads and writes, as histograms by process and file.
#include "fs/vfssize.h"

#include "coretap/files.hpp"
#include "coretap/ring_io.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "vfssize.skel.h"

using namespace coretap;
using Opt = rodata_of<vfssize_bpf>;
using Key = vfssize_key;

namespace {

constexpr std::string_view kOperations[] = {"R", "W"};

}  // namespace

TOOL(vfssize) {
  static const std::string kDescription =
      "Bytes that each system call read from a file or wrote to it, as one log2 histogram for each "
      "process, file and operation (R, W): read, write, their p and v forms, sendfile, splice, "
      "copy_file_range. The first range has the calls that returned 0 bytes, for example at the "
      "end of a file, or 1. The file is named by the path as the process sees it; one that is in "
      "no directory has the name that /proc/PID/fd gives it.\n\n"
      "A call with several buffers (readv, writev) is one value. Calls that fail do not count.\n\n" +
      std::string(kFileIoSeen);
  return {
      .name = "vfssize",
      .summary = "sizes of reads and writes, as histograms by process and file",
      .description = kDescription,
      .overhead =
          "a hook on every system call and io_uring request, which adds some tens of nanoseconds "
          "to calls that do not read or write files",
      .examples = {{"vfssize", "regular files, until Ctrl-C"},
                   {"vfssize -a -p 181", "sockets and pipes too, of process 181"},
                   {"vfssize --write-only --comm postgres 10 1",
                    "what postgres writes, 10 seconds"},
                   {"vfssize -- grep -r word /usr/share/doc", "of one command"}},
      .questions = {{"Does a program read or write in small pieces?", "vfssize -p 181"}},
      .object = skeleton<vfssize_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined({{shared::timestamp()},
                         shared::file_io<Opt>(),
                         shared::task_filters(),
                         {shared::max_keys()}}),
      .hooks = {{"system calls", {{{progs::on_exit}}}}, ring_io_hook()},
      .report = histogram<Key>(
                    maps::sizes, "bytes per call",
                    {field<&Key::comm>("comm", "comm", as::comm, "command name of the thread"),
                     field<&Key::pid>("pid", "pid", as::pid, "process"),
                     named<&Key::write, kOperations>("operation", "operation", as::text,
                                                     "R: read, W: write"),
                     derived<Key, file_of_row<Key>>("file", "file", as::rest, "path of the file")
                         .key_part()})
                    .scaled({unit::bytes, 1}),
      .announce = "Tracing sizes of reads and writes",
  };
}
