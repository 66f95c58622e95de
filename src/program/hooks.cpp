// Hooks that several tools have: one place for what their kernel programs share.
#include "coretap/hooks.hpp"

namespace coretap {

std::vector<Hook> run_delay_hooks() {
  const std::vector<std::string_view> at_wakeups = {"on_wakeup", "on_wakeup_new",
                                                    "switch_by_wakeup"};
  return {{"context switches",
           {{{"switch_by_delay"},
             {has_field("task_struct", "sched_info"), has_field("sched_info", "run_delay"),
              has_field("sched_entity", "cfs_rq")}},
            {at_wakeups}},
           "!affinity"},
          // Locks of programs came to tracing programs after 5.10, and before bpf_loop in 5.17.
          {.name = "context switches and wakeups",
           .candidates = {{at_wakeups, {has_enumerator("bpf_func_id", "BPF_FUNC_loop")}}},
           .when = "affinity",
           .instead = "leave out --affinity: tracing programs have no locks on this kernel"},
          {"CPUs that are idle at the start", {{{"idle_since_start"}}}, "affinity"}};
}

Hook waits_under_way() {
  return {.name = "waits under way at the end",
          .candidates = {{{"on_waiting"}}},
          .optional = "waits that are under way when tracing ends are not shown"};
}

}  // namespace coretap
