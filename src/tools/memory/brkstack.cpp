// brkstack: stacks that grow and shrink the heap.
#include "memory/brkstack.h"

#include "brkstack.skel.h"
#include "coretap/option_parts.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Opt = rodata_of<brkstack_bpf>;
using Key = brkstack_key;
using Counts = brkstack_counts;
using Line = Row<Key, Counts>;

namespace {

std::string call(const Line& l) { return l.key.mapped ? "mmap" : "brk"; }

/// For flame graphs: the bytes by which the heap grew.
const StackReport kGrowth =
    StackReport{"bytes by which the heap grew", StackReport::bytes}.user_stacks_with({});

}  // namespace

TOOL(brkstack) {
  return {
      .name = "brkstack",
      .summary = "code paths that grow and shrink the heap, with the bytes",
      .description =
          "Calls to brk(2) that change the end of a process' heap, by the user stack that made "
          "them: how often the heap grew and shrank, and by how many bytes. Calls that only query "
          "the end, or that fail, are not counted. With --mmap anonymous mappings count as growth, "
          "too: allocators get large blocks from them, and many get all memory from them.\n\n"
          "A growing heap is not necessarily a leak: memory that was freed stays in it. Calls by "
          "32-bit programs on 64-bit kernels are not seen.",
      .overhead =
          "two hooks per call to brk(2), and a user stack walk; these calls are rare, calls to "
          "mmap(2) less so",
      .examples = {{"brkstack", "all processes until Ctrl-C"},
                   {"brkstack --mmap -p 181 10", "with anonymous mappings, for ten seconds"},
                   {"brkstack -m 1048576", "only changes of a megabyte and more"},
                   {"brkstack --svg heap.svg -p 181", "a flame graph of the bytes"}},
      .questions = {{"Which code grows the heap?", "brkstack -p 181"},
                    {"Where does a program get its memory from the kernel?",
                     "brkstack --mmap -p 181"}},
      .object = skeleton<brkstack_bpf>(),
      .positionals = {shared::duration_argument()},
      .options =
          joined({{flag(0, "mmap", "also anonymous mappings"),
                   number('m', "min-bytes", "BYTES", "only changes of at least BYTES bytes",
                          setting(&Opt::min_bytes)),
                   shared::timestamp()},
                  shared::task_filters(),
                  {shared::folded(), shared::annotations(0), shared::svg(), shared::color_by(),
                   shared::pprof(), shared::lines(), shared::stack_depth(), shared::stack_storage(),
                   shared::unwind(), shared::unwind_memory(), shared::max_keys()},
                  belonging_to("!folded|svg|pprof",
                               {shared::interval(), shared::top('r'), shared::sort()})}),
      .hooks = {{"calls of brk", {{{progs::on_brk, progs::on_brk_return}}}},
                {"calls of mmap", {{{progs::on_mmap, progs::on_mmap_return}}}, "mmap"}},
      .report =
          table<Key, Counts>(
              maps::heaps,
              {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process"),
               of_key<Line, &Key::comm>("comm", "COMM", as::comm, "command name of the thread"),
               derived<Line, call>("call", "CALL", as::wide(as::text, -4), "brk or mmap").bounded(),
               of_value<Line, &Counts::grows>("grows", "GROWS", as::wide(as::number, 7),
                                              "calls that made the heap larger"),
               of_value<Line, &Counts::grown_bytes>("grown_bytes", "GROWN(KB)",
                                                    as::wide(as::kilobytes, 9),
                                                    "bytes by which it grew"),
               of_value<Line, &Counts::shrinks>("shrinks", "SHRINKS", as::wide(as::number, 7),
                                                "calls that made it smaller"),
               of_value<Line, &Counts::shrunk_bytes>("shrunk_bytes", "SHRUNK(KB)",
                                                     as::wide(as::kilobytes, 10),
                                                     "bytes by which it shrank"),
               user_stack_of<Line, &Key::user_stack, &Key::pid>()},
              "grown_bytes,shrunk_bytes")
              .counted_by(2)
              .timed_with("timestamp"),
      .other_reports = {{"folded", kGrowth}, {"svg", kGrowth}, {"pprof", kGrowth}},
      .announce = "Tracing heap growth",
      .exclusive = {{"folded", "json"}, {"folded", "csv"}},
  };
}
