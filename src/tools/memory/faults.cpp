// faults: page faults by stack, process, or file.
#include "memory/faults.h"

#include "coretap/faults.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "faults.skel.h"

using namespace coretap;
using Opt = rodata_of<faults_bpf>;
using Key = faults_key;
using Counts = faults_counts;
using Line = Row<Key, Counts>;

namespace {

constexpr When kTables = "processes|files";

std::uint64_t all(const Line& l) { return l.value.minor + l.value.major; }

AggregateReport rows() {
  auto areas = area_fields<Line, &Key::area>();
  for (auto& field : areas) field = field.only("files");
  return table<Key, Counts>(maps::rows,
                            {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process"),
                             of_key<Line, &Key::comm>("comm", "COMM", as::comm, "its command name"),
                             derived<Line, all>("faults", "FAULTS", as::number, "page faults"),
                             of_value<Line, &Counts::major>("major_faults", "MAJOR", as::number,
                                                            "faults for which data was read"),
                             of_value<Line, &Counts::minor>("minor_faults", "MINOR", as::number,
                                                            "all other faults")
                                 .with("json"),
                             areas},
                            "faults")
      .counted_by(2);
}

}  // namespace

TOOL(faults) {
  return {
      .name = "faults",
      .summary = "page faults by user and kernel stack, by process, or by file",
      .description =
          "Page faults counted by process and by the stack that caused them: which code makes a "
          "process grow, and which waits for data. There is a kernel stack if the kernel itself "
          "touched the memory, in a system call such as read(2). --processes and --files print a "
          "table of processes, or of the memory that they touched, with major and minor faults.\n\n"
          "Faults that were handled count, as in getrusage(2): major faults, for which data was "
          "read from a file or from swap, and minor faults. Not counted: pages that the kernel "
          "faults in to populate or pin memory (mlock, MAP_POPULATE, direct I/O), and faults that "
          "end in a signal.",
      .overhead =
          "a user stack walk per fault; with --period 100 for one fault in a hundred, with "
          "--processes for none",
      .examples = {{"faults -p 181 10", "the code of process 181 that faults, for ten seconds"},
                   {"faults -M", "major faults only, until Ctrl-C"},
                   {"faults --svg faults.svg 10", "a flame graph of all page faults"},
                   {"faults --processes 10", "major and minor faults by process"},
                   {"faults --files -p 181 10", "by the files that it has mapped"}},
      .questions = {{"Which code makes this process grow?", "faults -p 181 10"},
                    {"Which process waits for mapped files or for swap?",
                     "faults -M --processes 10"},
                    {"Which code causes most page faults?", "faults --svg faults.svg 10"}},
      .object = skeleton<faults_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined(
          {{flag('M', "major", "only major faults"), flag(0, "minor", "only minor faults"),
            flag('P', "processes", "a table of processes", setting(&Opt::by_process)),
            flag('F', "files", "a table of processes and the files that they have mapped",
                 setting(&Opt::by_file)),
            shared::sample_period('n', "count only one fault in N, as N faults", 1, "sample")},
           shared::task_filters(),
           {shared::max_keys()},
           belonging_to(kTables, {shared::top('r'), shared::sort(0)}),
           belonging_to("!processes|files", shared::stacks())}),
      .hooks = {faults::minor("!major"), faults::major("!minor"), faults::areas("files")},
      .report = StackReport{"page faults", StackReport::samples},
      .other_reports = {{"processes", rows()}, {"files", rows()}},
      .announce = "Tracing page faults",
      .exclusive =
          [] {
            auto rules = shared::stack_rules();
            rules.emplace_back("major", "minor");
            rules.emplace_back("processes", "files");
            return rules;
          }(),
  };
}
