// vfscount: calls of VFS functions.
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "lib/targets/count_calls.h"
#include "vfscount.skel.h"

using namespace coretap;
using Line = Row<count_calls_key, count_calls_counts>;

namespace {

Hook functions() {
  auto hook = traced("calls", [](const Config&) -> std::vector<std::string> { return {"vfs_*"}; });
  hook.instead = "vfsstat counts operations of the virtual file system by system calls";
  return hook;
}

}  // namespace

TOOL(vfscount) {
  return {
      .name = "vfscount",
      .summary = "calls of the kernel's vfs_* functions",
      .description =
          "How often each kernel function whose name starts with vfs_ was called: reads, writes, "
          "opens and so on, by any caller. It is the same as funccount 'vfs_*', which has more "
          "options. Not seen: functions that the compiler inlined.",
      .overhead = "some tens of nanoseconds per call, counted in the kernel, no output per event",
      .examples = {{"vfscount", "until Ctrl-C"},
                   {"vfscount 5", "for five seconds"},
                   {"vfscount -p 181", "of process 181"}},
      .questions = {{"Which file system operations are called?", "vfscount 10"}},
      .differs =
          {{Difference::bcc,
            "FUNC is the first column: there is none with the functions' addresses. Functions that are never "
            "called have no row."}},
      .object = skeleton<vfscount_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = {shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup(),
                  shared::interval(), shared::top('r'), shared::sort()},
      .hooks = {functions()},
      .report =
          table<count_calls_key, count_calls_counts>(
              maps::calls_cpus,
              {of_key<Line, &count_calls_key::target>("target", "FUNC", as::target, "function"),
               of_value<Line, &count_calls_counts::count>("count", "COUNT", as::pages, "calls")},
              "count")
              .by_slots()
              .ascending(),
      .announce = "Counting calls of the virtual file system",
  };
}
