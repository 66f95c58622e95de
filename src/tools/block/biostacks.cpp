// biostacks: block I/O latency by the stack that submitted it.
#include "block/biostacks.h"

#include "biostacks.skel.h"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Key = biostacks_key;
using Line = Row<Key, hist>;

TOOL(biostacks) {
  return {
      .name = "biostacks",
      .summary = "block I/O latency by the stack that submitted it, as histograms",
      .description =
          "A histogram of latencies for each process, disk and kernel stack that submitted "
          "requests; with --user-stacks also for each user stack. The latency is the time from the "
          "insertion into the I/O scheduler's queue, or the issue to the device where there is no "
          "such queue, to completion.\n\n"
          "The stack and the process are those of the submission: data that the kernel writes back "
          "later has the stack of a kernel thread. Requests that were made before tracing started "
          "have neither.",
      .overhead = "four hooks per I/O, and a kernel stack for each; counted in the kernel",
      .examples = {{"biostacks", "until Ctrl-C"},
                   {"biostacks -m -d sda 10", "ten seconds of sda, in milliseconds"},
                   {"biostacks --user-stacks -p 181", "with user stacks, of process 181"}},
      .questions = {{"Which code causes this disk I/O?", "biostacks --user-stacks 10"},
                    {"Which kernel path submits slow I/O?", "biostacks -m 10"}},
      .differs = {{Difference::libbpf_tools,
                   "The pid is that of the process. There it is that of the thread."},
                  {Difference::libbpf_tools,
                   "Stacks are deeper than 20 frames and histograms have no upper limit. There "
                   "times above half a second are counted as the largest, and a request that "
                   "is merged starts again."}},
      .object = skeleton<biostacks_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined(
          {{shared::request_disk(), shared::milliseconds(),
            flag(0, "user-stacks", "user stacks too"), shared::max_keys(), shared::stack_depth(),
            shared::stack_storage(), shared::unwind(), shared::unwind_memory()},
           shared::task_filters()}),
      .hooks = {{"submission", {{{progs::on_io_start}}, {{progs::on_getrq}}}},
                {"insertion into the queue", {{{progs::on_insert}}}},
                {"issue to the device", {{{progs::on_issue}}}},
                {"completion", {{{progs::on_complete}}}}},
      .maps = {{maps::requests, MapSize::block_requests}, {maps::bios, MapSize::block_bios}},
      .report = histogram<Key>(
          maps::latencies, "latency",
          {of_key<Line, &Key::comm>("comm", "comm", as::comm, "command name of the submitter"),
           of_key<Line, &Key::pid>("pid", "pid", as::pid, "its process; 0: unknown"),
           of_key<Line, &Key::disk>("disk", "disk", as::disk, "the disk"),
           kernel_stack_of<Line, &Key::kernel_stack>(),
           user_stack_of<Line, &Key::user_stack, &Key::pid>().with("user-stacks")}),
      .announce = "Tracing block I/O latency by stack",
  };
}
