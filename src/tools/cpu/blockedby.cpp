// blockedby: waits, and the owners of the objects that tasks wait for.
#include "blockedby.skel.h"
#include "coretap/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "cpu/lock_flags.h"
#include "tools/cpu/blockedby/report_blocked.hpp"
#include "tools/cpu/blockedby/report_now.hpp"

using namespace coretap;
using Opt = rodata_of<blockedby_bpf>;

namespace {

Hook open_waits() {
  auto hook = waits_under_way();
  hook.when = "!now";
  return hook;
}

Result<void> check(const Config& c) {
  if (c.given("now") && !c.command.empty())
    return usage("--now shows one moment: it cannot run a command", "leave out -- and the command");
  return shared::check_off_cpu(c);
}

}  // namespace

TOOL(blockedby) {
  return {
      .name = "blockedby",
      .summary = "waits for locks, files and peers, by the task that holds them up",
      .description =
          "Waits, summed by the waiting thread and its stacks, the object that it waited for, and "
          "the owner of the object with its stack. If the owner waited, too, most of that time, "
          "the owner of that object follows, and so on.\n\n"
          "Owners are known of the kernel's mutexes and reader/writer semaphores that a writer "
          "holds (mmap_lock, too), of mutexes of glibc, of PI and robust mutexes, of threads that "
          "are joined, and of file locks. If an object changes its owner during a wait, each owner "
          "gets its part. The owner of a mutex is accepted only if it is a thread of the process; "
          "owners of mutexes that processes share are not checked.\n\n"
          "Other waits (pipes, sockets, conditions, locks that do not say who holds them, "
          "semaphores held by readers) have the task that ended them, marked ~. Waits that no task "
          "ended (time, devices, networks) are shown only if they are uninterruptible, and waits "
          "for work (epoll, poll, accept, sleep) are not; --all shows both.\n\n"
          "Times are from leaving the CPU until the wake-up. Waits that spin are not seen. Filters "
          "apply to the waiting thread.\n\n"
          "With --now it does not trace: it shows which tasks are blocked at this moment, below "
          "those that hold what they wait for. The holder of a futex is read in the memory of the "
          "waiting process, that of a file lock in /proc/locks. Since Linux 6.17 the kernel keeps "
          "which mutex a task waits for, and if it is built to report hung tasks "
          "(CONFIG_DETECT_HUNG_TASK_BLOCKER), which semaphore. What is not known is said.",
      .overhead =
          "one hook per context switch with a walk of the user stack, one per wake-up with walks "
          "of both stacks, two per wait for a lock of the kernel; a kernel stack for each wait "
          "that is shown",
      .examples = {{"blockedby 10 1", "ten seconds, all threads"},
                   {"blockedby -p 1234", "who holds up this process, until Ctrl-C"},
                   {"blockedby -K -m 1000 5 1", "waits of a millisecond and more, kernel stacks"},
                   {"blockedby --top 10 1", "the ten largest, each second"},
                   {"blockedby --now", "a hang that is under way: who holds up whom"}},
      .questions = {{"Who holds the lock that my program waits for?", "blockedby -p 1234 10 1"},
                    {"Which task is at the end of a chain of waiting tasks?",
                     "blockedby -m 1000 10 1"},
                    {"Programs hang: who holds up whom?", "blockedby --now"}},
      .object = skeleton<blockedby_bpf>(),
      .positionals = shared::interval_count(),
      .options =
          joined({shared::task_filters(false),
                  shared::off_cpu<Opt>(),
                  shared::one_stack_only(),
                  {flag(0, "now", "the tasks that are blocked now, as a tree, instead of tracing"),
                   flag('a', "all", "also waits that no task ends, and waits for work",
                        setting(&Opt::all_waits)),
                   shared::top(), shared::max_keys(), shared::stack_depth(),
                   shared::stack_storage(), shared::unwind(), shared::unwind_memory()}}),
      .hooks = {{"context switches", {{{progs::on_switch}}}, "!now"},
                {"wake-ups", {{{progs::on_waking}}}, "!now"},
                {"locks of the kernel",
                 {{{progs::on_contended, progs::on_contended_end}},
                  {{KLOCK_WAITS(KLOCK_ENTRIES) KLOCK_WAITS(KLOCK_RETURNS)},
                   {},
                   "only waits for mutexes and reader/writer semaphores have an owner"}},
                 "!now",
                 "waits for locks of the kernel have no owner"},
                open_waits(),
                {"all tasks", {{{progs::on_blocked}}}, "now"}},
      .maps = {{maps::waits, MapSize::objects, "!now"}},
      .report = BlockedReport{},
      .other_reports = {{"now", NowReport{}}},
      .announce = "Tracing waits and who ends them",
      .exclusive = {{"user-stacks-only", "kernel-stacks-only"}},
      .check = check,
  };
}
