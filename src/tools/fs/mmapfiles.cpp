// mmapfiles: files that are mapped into memory.
#include "fs/mmapfiles.h"

#include "coretap/files.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "mmapfiles.skel.h"

using namespace coretap;
using Opt = rodata_of<mmapfiles_bpf>;
using Key = mmapfiles_key;
using Counts = mmapfiles_counts;
using Line = Row<Key, Counts>;

TOOL(mmapfiles) {
  return {
      .name = "mmapfiles",
      .summary = "files that are mapped into memory, with how often and how much",
      .description =
          "How often each file was mapped: libraries and programs that are started, and files that "
          "programs read and write through mapped memory. EXEC counts mappings whose memory may be "
          "executed, WRITE those whose writes go to the file (MAP_SHARED). Files are identified by "
          "device and inode; the path is as the process sees it. Calls that fail count, too; "
          "anonymous memory does not. mmapsnoop has a line for each call.",
      .overhead =
          "a hook per mapping, counted in the kernel; if the kernel cannot trace functions, a "
          "small cost on every system call, because the kernel then takes its slow path",
      .examples = {{"mmapfiles", "all files until Ctrl-C"},
                   {"mmapfiles -r 10 5 12", "a minute, every five seconds, the ten with the most"},
                   {"mmapfiles -P -s mapped_bytes", "by process, too, the largest first"},
                   {"mmapfiles -- ls", "programs and libraries that a command uses"}},
      .questions = {{"Which libraries are mapped all the time?", "mmapfiles 10 1"},
                    {"Which files does a program map?", "mmapfiles -p 1234"}},
      .object = skeleton<mmapfiles_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined({{flag('P', "processes", "rows by process, too", setting(&Opt::by_process)),
                          shared::name('n'), shared::top('r'), shared::sort(), shared::max_keys()},
                         shared::task_filters()}),
      .hooks = {{"mappings",
                 {{{progs::on_map}},
                  {{progs::on_map_kprobe}},
                  {.programs = {progs::on_call},
                   .caveat = "this kernel cannot trace functions: what it maps itself when a "
                             "program starts is not seen, nor are 32-bit programs"}}}},
      .report = table<Key, Counts>(
          maps::files,
          {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process").only("processes"),
           of_key<Line, &Key::comm>("comm", "COMM", as::comm, "its command name").only("processes"),
           of_value<Line, &Counts::maps>("maps", "MAPS", as::pages, "mappings"),
           of_value<Line, &Counts::executable>("executable_maps", "EXEC", as::pages,
                                               "executable mappings"),
           of_value<Line, &Counts::writing>("writing_maps", "WRITE", as::pages,
                                            "mappings whose writes go to the file"),
           of_value<Line, &Counts::bytes>("mapped_bytes", "SIZE(KB)", as::wide(as::kilobytes, 10),
                                          "their size"),
           identity_of_file<Line>(),
           derived<Line, file_of_row<Line>>("file", "FILE", as::rest, "path of the file")
               .key_part()},
          "maps,mapped_bytes"),
      .announce = "Tracing files that are mapped",
  };
}
