// ffaults: page faults by file.
#include "coretap/faults.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "ffaults.skel.h"
#include "lib/mm/file_faults.h"

using namespace coretap;
using Opt = rodata_of<ffaults_bpf>;
using Key = file_faults_key;
using Counts = file_faults_counts;
using Line = Row<Key, Counts>;

namespace {

std::uint64_t all(const Line& l) { return l.value.minor + l.value.major; }

}  // namespace

TOOL(ffaults) {
  return {
      .name = "ffaults",
      .summary = "page faults by the file that the memory is mapped from",
      .description =
          "Page faults by mapped file, and how many had to wait for data (MAJOR). Files are "
          "identified by device and inode: two files with the same name have two rows, and a file "
          "with two names has one. Memory without a file is [anon], [heap], [stack] or [special] "
          "(the kernel's own, such as the vDSO). [unknown]: another thread was changing the "
          "process' mappings.\n\n"
          "Faults that were handled count, as in getrusage(2). On a read fault the kernel also "
          "maps surrounding pages that are in memory: a file may have fewer faults than pages that "
          "were read. Not counted: pages that the kernel faults in to populate or pin memory "
          "(mlock, MAP_POPULATE, direct I/O).",
      .overhead = "a hook per page fault (two with --write), counted in the kernel",
      .examples = {{"ffaults", "all files until Ctrl-C"},
                   {"ffaults 10 6", "a minute, every ten seconds"},
                   {"ffaults -P -r 20 10 1", "the twenty files and processes with the most faults"},
                   {"ffaults -w -p 181", "what process 181 writes through its mappings"}},
      .questions = {{"Which mapped files cause page faults?", "ffaults 10 1"},
                    {"Which mapped file is a program waiting for?",
                     "ffaults -s major_faults 10 1"}},
      .object = skeleton<ffaults_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined(
          {{flag('P', "processes", "separate rows for each process", setting(&Opt::by_process)),
            flag('w', "write", "only write faults", setting(&Opt::writes_only)), shared::top('r'),
            shared::sort(), shared::max_keys()},
           shared::task_filters()}),
      .hooks = {faults::minor(), faults::major(), faults::areas(), faults::starts("write")},
      .report = table<Key, Counts>(
                    maps::files,
                    {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process").only("processes"),
                     of_key<Line, &Key::comm>("comm", "COMM", as::comm, "its command name")
                         .only("processes"),
                     derived<Line, all>("faults", "FAULTS", as::number, "page faults"),
                     of_value<Line, &Counts::major>("major_faults", "MAJOR", as::number,
                                                    "faults for which data was read"),
                     of_value<Line, &Counts::minor>("minor_faults", "MINOR", as::number,
                                                    "all other faults")
                         .with("json"),
                     area_fields<Line, &Key::area>()},
                    "faults")
                    .counted_by(2),
      .announce = "Tracing page faults by file",
  };
}
