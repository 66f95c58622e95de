// Hooks that several tools share, as their kernel programs share the code.
#include "coretap/hooks.hpp"
#include "coretap/ring_io.hpp"

namespace coretap {

std::vector<Hook> run_delay_hooks() {
  const std::vector<ProgramName> at_wakeups = {
      ProgramName("on_wakeup"), ProgramName("on_wakeup_new"), ProgramName("switch_by_wakeup")};
  return {{"context switches",
           {{{ProgramName("switch_by_delay")},
             {has_field("task_struct", "sched_info"), has_field("sched_info", "run_delay"),
              has_field("sched_entity", "cfs_rq")}},
            {at_wakeups}},
           "!affinity"},
          // Spin locks in tracing programs: later than 5.10, earlier than bpf_loop (5.17).
          {.name = "context switches and wakeups",
           .candidates = {{at_wakeups, {has_enumerator("bpf_func_id", "BPF_FUNC_loop")}}},
           .when = "affinity",
           .instead = "leave out --affinity: tracing programs have no locks on this kernel"},
          {"CPUs that are idle at the start", {{{ProgramName("idle_since_start")}}}, "affinity"}};
}

Hook waits_under_way() {
  return {.name = "waits under way at the end",
          .candidates = {{{ProgramName("on_waiting")}}},
          .optional = "waits that are under way when tracing ends are not shown"};
}

namespace {

constexpr std::string_view kRingHook = "requests of io_uring";
constexpr std::string_view kRingUnseen = "reads and writes through io_uring are not seen";
constexpr std::string_view kRingDoubt =
    "requests of io_uring are identified by their user_data: those of a ring that have the same at "
    "a time are counted as not matched";

/// The arguments of these tracepoints have changed between kernels: bpf/lib/fs/ring_io.bpf.h.
Need completions(int arguments) { return has_arguments("io_uring_complete", arguments); }
Need submissions(int arguments) { return has_arguments("io_uring_submit_sqe", arguments); }

/// For kernels before 5.18; 5.10 has the io_uring of 5.15.
Candidate by_user_data() {
  return {{ProgramName("on_ring_end"), ProgramName("on_ring_sqe")},
          {completions(4), submissions(7)},
          kRingDoubt};
}

}  // namespace

Hook ring_io_hook() {
  return {kRingHook,
          {{{ProgramName("on_ring_end")}, {completions(3)}},
           {{ProgramName("on_ring_end")}, {completions(7)}},
           by_user_data()},
          {},
          kRingUnseen};
}

Hook timed_ring_io_hook() {
  return {
      kRingHook,
      {{{ProgramName("on_ring_end"), ProgramName("on_ring_req")}, {completions(3)}},
       {{ProgramName("on_ring_end"), ProgramName("on_ring_req")}, {completions(7)}},
       {{ProgramName("on_ring_end"), ProgramName("on_ring_sqe")}, {completions(7), submissions(2)}},
       by_user_data()},
      {},
      kRingUnseen};
}

Hook ended_sockets(When when) {
  return {"end of sockets",
          {{{}, {has_enumerator("bpf_func_id", "BPF_FUNC_task_storage_get")}},
           {{ProgramName("on_destroy")}}},
          when};
}

Hook accepted_connections(When when) {
  return {
      .name = "accepted connections",
      .candidates = {{{ProgramName("on_accept")}},
                     {.programs = {ProgramName("on_accept_exit")},
                      .caveat = "the process that accepts a connection is known from the end of "
                                "its system call, and all system calls take a little longer "
                                "meanwhile; not known: that of accepts by io_uring and by "
                                "32-bit programs on a 64-bit kernel"}},
      .when = when,
      .optional = "who accepted a connection is not known"};
}

}  // namespace coretap
