// pidpersec: new processes and threads.
#include "cpu/pidpersec.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "pidpersec.skel.h"

using namespace coretap;
using Sums = pidpersec_sums;

namespace {

std::uint64_t all(const Sums& s) { return s.processes + s.threads; }

}  // namespace

TOOL(pidpersec) {
  return {
      .name = "pidpersec",
      .summary = "new processes and threads per second",
      .description =
          "Each interval: new tasks per second (PIDs/sec), and how many of the new tasks were "
          "processes and how many were threads of an existing process. Kernel threads count as "
          "processes. A failed fork is not counted.\n\n"
          "Filters apply to the task that forks.",
      .overhead = "one hook per fork; counted in the kernel, per CPU",
      .examples = {{"pidpersec", "a line per second"},
                   {"pidpersec 10 6", "a minute, every ten seconds"},
                   {"pidpersec -c system.slice/nginx.service", "what one service forks"},
                   {"pidpersec -- make -j8", "what this command and its children fork"}},
      .questions = {{"Does something fork new processes all the time?", "pidpersec"},
                    {"Does this service create a thread for each request?",
                     "pidpersec -c system.slice/nginx.service"}},
      .differs =
          {{Difference::bcc,
            "A line is a row of a table: the time, the new tasks per second, and how many "
            "were processes and threads. There it is \"TIME: PIDs/sec: N\", threads count as processes, and forks while the counter is "
            "being cleared are lost."}},
      .object = skeleton<pidpersec_bpf>(),
      .positionals = shared::interval_count(1),
      .options = shared::task_filters(),
      .hooks = {{"forks", {{{progs::on_fork}}}}},
      .report =
          sums<Sums>(
              maps::forks_cpus,
              {rate<Sums, all>("tasks_per_second", "PIDs/sec", as::wide(as::number, 10),
                               "new tasks per second of the interval"),
               field<&Sums::processes>("processes", "PROCESSES", as::number, "new processes"),
               field<&Sums::threads>("threads", "THREADS", as::number, "new threads of processes")})
              .counted_by(2)
              .always_timed(),
      .announce = "Tracing new tasks",
  };
}
