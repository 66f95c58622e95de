// forksnoop: new processes and threads.
#include "cpu/forksnoop.h"

#include <linux/sched.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "coretap/flags.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "forksnoop.skel.h"

using namespace coretap;
using Event = forksnoop_event;
using Rodata = rodata_of<forksnoop_bpf>;

namespace {

/// As lsns(8) names them.
constexpr NumberedWord<std::uint64_t> kNamespaces[] = {
    {CLONE_NEWNS, "mnt"},    {CLONE_NEWUTS, "uts"},  {CLONE_NEWIPC, "ipc"},
    {CLONE_NEWPID, "pid"},   {CLONE_NEWNET, "net"},  {CLONE_NEWCGROUP, "cgroup"},
    {CLONE_NEWUSER, "user"}, {CLONE_NEWTIME, "time"}};

std::string flags(const Event& e) { return flag_words(new_task_words(), e.flags); }

TextList namespaces(const Event& e) {
  TextList all;
  for (auto& [flag, name] : kNamespaces)
    if (e.flags & flag || (flag == CLONE_NEWPID && e.pid_namespace)) all.each.emplace_back(name);
  all.line = all.each.empty() ? "-" : fmt::format("{}", fmt::join(all.each, ","));
  return all;
}

}  // namespace

TOOL(forksnoop) {
  return {
      .name = "forksnoop",
      .summary = "new processes and threads, their creators, and how they are made",
      .description =
          "One line for each new process, by fork, vfork, clone or clone3, whether or not it runs "
          "another program later; with --threads also for each new thread. PID and COMM are those "
          "of the process that makes it, PPID is that one's parent. FLAGS are the flags of "
          "clone(2); a plain fork has those that the C library adds. NEW-NS are the namespaces "
          "that begin with it: those that the flags ask for, and the pid namespace that its "
          "creator asked for with unshare(2). Namespaces that it joins or shares are not new.\n\n"
          "Filters apply to the creator; UID is its user, before a new user namespace changes it. "
          "The cgroup is the one in which the new task starts. Its first parent is child_ppid in "
          "JSON: the creator, or with CLONE_PARENT the creator's parent. Threads that the kernel "
          "makes for its own work are processes whose creator is kthreadd; workers of io_uring are "
          "threads.",
      .overhead = "one hook per new process or thread, well below a microsecond",
      .examples = {{"forksnoop", "all new processes"},
                   {"forksnoop -H -p 181", "processes and threads that process 181 makes"},
                   {"forksnoop --comm containerd-shim,runc",
                    "with which namespaces containers start"},
                   {"forksnoop -- make", "each process of a build"}},
      .questions = {{"Which process forks all the time?", "forksnoop"},
                    {"Does a service fork, vfork or use threads?", "forksnoop -H -p 1234"},
                    {"Which namespaces does a container start with?", "forksnoop --comm runc"}},
      .object = skeleton<forksnoop_bpf>(),
      .options = {shared::pid(), shared::tid(0), shared::uid(), shared::comm(), shared::cgroup(),
                  flag('H', "threads", "new threads, too", setting(&Rodata::with_threads))},
      .hooks = {{"new tasks", {{{progs::on_new}}}}},
      .report = events<Event>(
                    {who<&Event::who>(id::uid.with(""), id::pid, id::comm, id::tid),
                     field<&Event::ppid>("ppid", "PPID", as::pid, "parent of the creator"),
                     who<&Event::child>(id::pid.keyed("child_pid", "CHILD"),
                                        id::tid.keyed("child_tid", "CTID").with("threads")),
                     field<&Event::child_ppid>("child_ppid", "CPPID", as::pid,
                                               "parent of the new process")
                         .with("json"),
                     derived<Event, namespaces>("new_namespaces", "NEW-NS", as::wide(as::text, -12),
                                                "namespaces that begin with it")
                         .no_metric(),
                     who<&Event::child>(id::cgroup),
                     derived<Event, flags>("clone_flags", "FLAGS", as::rest, "flags of clone(2)")})
                    .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .announce = "Tracing new processes",
  };
}
