// deadlock: in which orders the threads of a process take its mutexes.
#include "app/deadlock.h"

#include "cli/config.hpp"
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
          .doc = "process to watch, as --pid; without one and without a command: all",
          .apply = pid.apply,
          .complete = Complete::pid,
          .option = "pid"};
}

Option also(Option option, char letter, std::string_view alias) {
  option.letter = letter;
  option.alias = alias;
  return option;
}

Hook function(std::string_view name, std::string_view entry, std::string_view end) {
  return {name, {{{entry, end}}}, {}, "this C library has no such function"};
}

}  // namespace

TOOL(deadlock) {
  return {
      .name = "deadlock",
      .summary = "mutexes that threads of a process take in orders that can deadlock",
      .description =
          "Watches in which order the threads of a process take its mutexes (pthread_mutex_lock "
          "and its relatives, and with them those of C++ and of most other languages). Where these "
          "orders form a cycle, the threads can deadlock, though they may not have done so yet: "
          "the tool shows the cycle at once, with the user stacks in which each mutex was taken "
          "and those in which the threads were made.\n\n"
          "A mutex counts as soon as a thread waits for it, so that a deadlock that is there is "
          "shown, too. pthread_mutex_trylock does not wait: what it takes is held, but no order "
          "ends there. Waits with a time limit count, and are marked. pthread_cond_wait gives its "
          "mutex back and takes it again. A cycle is left out as long as all of its orders were "
          "taken under one and the same other mutex. What has the address of a mutex that "
          "pthread_mutex_destroy or pthread_mutex_init has seen is another mutex; one that is "
          "freed without pthread_mutex_destroy, as C++'s std::mutex is, is taken for the next one "
          "at its address, and a cycle may then be none: compare the stacks, or use --free.\n\n"
          "Mutexes that were taken before tracing began are not known, nor are reader/writer "
          "locks and spinlocks.",
      .overhead =
          "two breakpoints and a walk of the user stack each time a mutex is taken, and one "
          "breakpoint when it is given back: some microseconds. With a process or a command other "
          "processes pay nothing; without, all that use mutexes become slower",
      .examples = {{"deadlock 181", "watch process 181 until Ctrl-C"},
                   {"deadlock --dump-graph locks.dot 181", "with a graph of all orders"},
                   {"deadlock -- ./server", "a command, from its start"},
                   {"deadlock --binary /usr/lib/libmusl.so 181", "another library's mutexes"}},
      .questions = {{"Can this program deadlock?", "deadlock 181"},
                    {"Why does this program hang?", "deadlock -- ./server"}},
      .differs = {{Difference::bcc,
                   "The mutexes that a thread holds are forgotten as it releases them. There "
                   "releases are not seen, so that cycles are reported that do not exist."},
                  {Difference::bcc,
                   "The stacks in which threads were made are known with glibc 2.34 and later, "
                   "too, and the process may be left out: then all processes are watched."}},
      .object = skeleton<deadlock_bpf>(),
      .positionals = {process()},
      .options =
          {shared::pid(), shared::tid(0), shared::uid(0), shared::comm(), shared::cgroup(0),
           also(shared::library(0), 0, "binary"), shared::symbols_prefix(),
           value(
               0, "dump-graph", "FILE", "write all orders to this file at the end, for Graphviz",
               [](Config&, std::string_view) -> Result<void> { return {}; }, Complete::file),
           flag(0, "free",
                "mutexes end with the block of glibc's memory that they are in (a breakpoint per "
                "free)",
                setting(&Opt::frees)),
           shared::duration('d'), shared::offset(0), also(shared::max_keys(), 'e', "edges"),
           shared::stack_depth(), also(shared::stack_storage(), 's', "stacktraces"),
           shared::unwind(), shared::unwind_memory()},
      .elsewhere = {{'t', "threads", "--max-keys N"},
                    {0, "lock-symbols", "--symbols-prefix for functions with other names"},
                    {0, "unlock-symbols", "--symbols-prefix for functions with other names"}},
      .hooks = {{"mutexes that are taken",
                 {{{"on_pthread_mutex_lock", "on_pthread_mutex_lock_return"}}}},
                {"mutexes that are given back", {{{"on_unlock"}}}},
                function("pthread_mutex_trylock", "on_pthread_mutex_trylock",
                         "on_pthread_mutex_trylock_return"),
                function("pthread_mutex_timedlock", "on_pthread_mutex_timedlock",
                         "on_pthread_mutex_timedlock_return"),
                function("pthread_mutex_clocklock", "on_pthread_mutex_clocklock",
                         "on_pthread_mutex_clocklock_return"),
                function("pthread_cond_wait", "on_pthread_cond_wait",
                         "on_pthread_cond_wait_return"),
                function("pthread_cond_timedwait", "on_pthread_cond_timedwait",
                         "on_pthread_cond_timedwait_return"),
                function("pthread_cond_clockwait", "on_pthread_cond_clockwait",
                         "on_pthread_cond_clockwait_return"),
                function("lives of mutexes", "on_init", "on_destroy"),
                {"free", {{{"on_free"}}}, "free"},
                {"threads that are made", {{{"on_new_task", "on_create"}}}}},
      .maps = {{"orders", MapSize::objects},
               {"lives", MapSize::objects},
               {"pages", MapSize::objects, "free"},
               {"creators", MapSize::objects}},
      .report = DeadlockReport{},
      .announce = "Tracing the orders in which mutexes are taken",
  };
}
