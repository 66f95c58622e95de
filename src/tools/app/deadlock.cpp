// deadlock: the orders in which the threads of a process take its mutexes.
#include "app/deadlock.h"

#include "coretap/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "deadlock.skel.h"
#include "tools/app/deadlock/report_deadlock.hpp"

using namespace coretap;
using Opt = rodata_of<deadlock_bpf>;

namespace {

Positional process() {
  auto pid = shared::pid();
  return {.metavar = "PID",
          .doc = "process to watch, like --pid; without PID or a command: all processes",
          .apply = pid.apply,
          .complete = Complete::pid,
          .option = "pid"};
}

Hook function(std::string_view name, ProgramName entry, ProgramName end) {
  return {name, {{{entry, end}}}, {}, "this C library has no such function"};
}

}  // namespace

TOOL(deadlock) {
  return {
      .name = "deadlock",
      .summary = "mutexes that threads of a process take in orders that can deadlock",
      .description =
          "Watches the order in which the threads of a process take its mutexes "
          "(pthread_mutex_lock and its relatives, on which the mutexes of C++ and most other "
          "languages are built). If these orders form a cycle, the threads can deadlock, even if "
          "they have not done so yet: the tool shows the cycle as soon as it finds it, with the "
          "user stacks in which each mutex was taken and those in which the threads were "
          "created, and then ends with status 1, unless --all is given.\n\n"
          "A mutex counts as soon as a thread waits for it, so an actual deadlock is shown, too. "
          "pthread_mutex_trylock does not wait: a mutex that it takes is held, but cannot be "
          "second in an order. Waits with a time limit count, and are marked. pthread_cond_wait "
          "releases its mutex and takes it again. A cycle is not shown while all of its orders "
          "were taken under the same other mutex. After pthread_mutex_destroy or "
          "pthread_mutex_init, the same address is a different mutex. A mutex that is freed "
          "without pthread_mutex_destroy, as a C++ std::mutex is, is confused with the next one at "
          "its address, and a cycle may then be false: compare the stacks, or use --free.\n\n"
          "Not seen: mutexes that were taken before tracing started, reader/writer locks, and "
          "spinlocks.",
      .overhead =
          "two breakpoints and a user stack walk each time a mutex is taken, and one breakpoint "
          "when it is released: some microseconds. With a process or a command, other processes "
          "pay nothing; otherwise, all processes that use mutexes become slower",
      .examples = {{"deadlock 181", "watch process 181 until Ctrl-C"},
                   {"deadlock --all --dump-graph locks.dot 181", "with a graph of all orders"},
                   {"deadlock -- ./server", "a command, from its start"},
                   {"deadlock --binary /usr/lib/libmusl.so 181", "another library's mutexes"}},
      .questions = {{"Can this program deadlock?", "deadlock 181"},
                    {"Why does this program hang?", "deadlock -- ./server"}},
      .differs = {{Difference::bcc,
                   "A mutex is no longer held after its thread releases it. There releases are not "
                   "seen, so cycles that do not exist are reported."},
                  {Difference::bcc,
                   "The stacks in which threads were created are also shown with glibc 2.34 and "
                   "later, and the process is optional: without one, all processes are watched."}},
      .object = skeleton<deadlock_bpf>(),
      .positionals = {process()},
      .options =
          {shared::pid(), shared::tid(0), shared::uid(0), shared::comm(), shared::cgroup(0),
           shared::library(0, "binary"), shared::return_trampoline(), shared::symbols_prefix(),
           flag(0, "all", "go on after the first potential deadlock"),
           free_text(0, "dump-graph", "FILE",
                     "write all orders to this file at the end: as JSON (node-link), or for "
                     "Graphviz if it is named *.dot or *.gv",
                     Complete::file),
           flag(0, "free",
                "a mutex ends when the block of glibc memory that it is in is freed (a breakpoint "
                "per free)",
                setting(&Opt::frees)),
           shared::duration('d'), shared::offset(0), shared::max_keys('e').also("edges"),
           shared::stack_depth(), shared::stack_storage('s').also("stacktraces"), shared::unwind(),
           shared::unwind_memory()},
      .other_meanings = {{0, "verbose",
                          "attach points here; in bcc the number of mutexes and orders, which the "
                          "last line always has; -v has no note"}},
      .elsewhere = {{'t', "threads", "--max-keys N"},
                    {0, "lock-symbols", "--symbols-prefix for functions with other names"},
                    {0, "unlock-symbols", "--symbols-prefix for functions with other names"}},
      .hooks =
          {{"mutexes that are taken", {{{progs::on_pthread_mutex_lock, progs::on_return}}}},
           {"mutexes that are given back", {{{progs::on_unlock}}}},
           function("pthread_mutex_trylock", progs::on_pthread_mutex_trylock, progs::on_return),
           function("pthread_mutex_timedlock", progs::on_pthread_mutex_timedlock, progs::on_return),
           function("pthread_mutex_clocklock", progs::on_pthread_mutex_clocklock, progs::on_return),
           function("pthread_cond_wait", progs::on_pthread_cond_wait, progs::on_return),
           function("pthread_cond_timedwait", progs::on_pthread_cond_timedwait, progs::on_return),
           function("pthread_cond_clockwait", progs::on_pthread_cond_clockwait, progs::on_return),
           function("lives of mutexes", progs::on_init, progs::on_destroy),
           {"free", {{{progs::on_free}}}, "free"},
           {"threads that are made", {{{progs::on_new_task, progs::on_create}}}}},
      .maps = {{maps::orders, MapSize::objects},
               {maps::lives, MapSize::objects},
               {maps::pages, MapSize::objects, "free"},
               {maps::creators, MapSize::objects}},
      .report = DeadlockReport{},
      .announce = "Tracing the orders in which mutexes are taken",
  };
}
