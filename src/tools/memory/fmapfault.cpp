// fmapfault: page faults on mapped files, by process and file.
#include "coretap/faults.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "fmapfault.skel.h"
#include "lib/mm/file_faults.h"

using namespace coretap;
using Key = file_faults_key;
using Counts = file_faults_counts;
using Line = Row<Key, Counts>;

namespace {

std::uint64_t all(const Line& l) { return l.value.minor + l.value.major; }

}  // namespace

TOOL(fmapfault) {
  return {
      .name = "fmapfault",
      .summary = "page faults on mapped files, by process and file",
      .description =
          "How often each process faulted on each file that it has mapped: its program, libraries, "
          "and data. MAJOR counts the faults for which data was read and that the process waited "
          "for. The report is that of ffaults --processes without memory that has no file.\n\n"
          "Faults that were handled count, as in getrusage(2). On a read fault the kernel also "
          "maps surrounding pages that are in memory: a file may have fewer faults than pages that "
          "were read. Files in memory (tmpfs, memfd) count too.",
      .overhead = "a hook per page fault (two with --write), counted in the kernel",
      .examples = {{"fmapfault", "all processes and files until Ctrl-C"},
                   {"fmapfault -s major_faults -r 10 5 12",
                    "every five seconds, the ten that waited most often"},
                   {"fmapfault -p 181 10 1", "process 181, for ten seconds"}},
      .questions = {{"Which process faults on which mapped file?", "fmapfault 10 1"},
                    {"Does a program wait for its own code?", "fmapfault -s major_faults -p 1234"}},
      .object = skeleton<fmapfault_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined({{flag('w', "write", "only write faults",
                               setting(&rodata_of<fmapfault_bpf>::writes_only)),
                          shared::name('n'), shared::top('r'), shared::sort(), shared::max_keys()},
                         shared::task_filters()}),
      .hooks = {faults::minor(), faults::major(), faults::areas(), faults::starts("write")},
      .report = table<Key, Counts>(
                    maps::files,
                    {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process"),
                     of_key<Line, &Key::comm>("comm", "COMM", as::comm, "its command name"),
                     derived<Line, all>("faults", "FAULTS", as::number, "page faults"),
                     of_value<Line, &Counts::major>("major_faults", "MAJOR", as::number,
                                                    "faults for which data was read"),
                     of_value<Line, &Counts::minor>("minor_faults", "MINOR", as::number,
                                                    "all other faults")
                         .with("json"),
                     area_fields<Line, &Key::area>()},
                    "faults")
                    .counted_by(2),
      .announce = "Tracing page faults on mapped files",
  };
}
