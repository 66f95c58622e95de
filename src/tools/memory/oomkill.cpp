// oomkill: processes that the kernel kills for lack of memory.
#include "memory/oomkill.h"

#include <algorithm>

#include <fmt/format.h>

#include "coretap/kernel.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "oomkill.skel.h"

using namespace coretap;
using Event = oomkill_event;

namespace {

constexpr std::string_view kKinds[] = {"machine", "memcg"};
static_assert(std::size(kKinds) == OOMKILL_KINDS);

std::uint64_t in_bytes(std::uint64_t pages) { return pages * page_bytes(); }
template <auto Member>
std::uint64_t bytes(const Event& e) {
  return in_bytes(e.*Member);
}

Value memcg_path(const Event& e) {
  if (!e.memcg.id) return {};
  auto bytes = std::min<std::size_t>(e.memcg.path_bytes, sizeof e.memcg.path);
  return path_of({e.memcg.path, bytes}, e.memcg.path_cut);
}

/// As in similar tools: memory and swap of the machine, or the limit of the memory cgroup.
std::uint64_t limit_bytes(const Event& e) {
  if (e.kind == OOMKILL_MEMCG) return in_bytes(e.memcg.limit);
  return (memory_kb("MemTotal") + memory_kb("SwapTotal")) << 10;
}

std::string sentence(const Event& e) {
  auto task = [](const task_id& t) {
    return fmt::format("PID {} (\"{}\")", t.pid, text_in(t.comm));
  };
  auto loads = read_file("/proc/loadavg", 128).value_or("-");
  auto line = fmt::format("Triggered by {}, {} of {}, {} pages, loadavg: {}", task(e.trigger),
                          e.killed ? "OOM kill" : "no OOM kill (already exiting)", task(e.victim),
                          limit_bytes(e) / in_bytes(1), loads.substr(0, loads.find('\n')));
  if (e.kind == OOMKILL_MEMCG && e.memcg.id)
    line += ", limit of the memory cgroup of " + std::get<std::string>(memcg_path(e));
  return line + fmt::format(", anon-rss: {} kB, file-rss: {} kB, shmem-rss: {} kB",
                            in_bytes(e.anon) >> 10, in_bytes(e.file) >> 10,
                            in_bytes(e.shmem) >> 10);
}

}  // namespace

TOOL(oomkill) {
  return {
      .name = "oomkill",
      .summary = "processes killed because memory ran out, and which task triggered it",
      .description =
          "One line per process that the kernel kills because there is no memory left, on the "
          "whole machine or within the limit of a memory cgroup: the task whose allocation "
          "triggered it, the killed process, the total pages that could be used (memory and swap "
          "of the machine, or the limit of the memory cgroup), the load averages, and the resident "
          "memory of the killed process by type. A process that was already exiting is marked: it "
          "gets no signal.\n\n"
          "From 6.2 on the kernel counts resident memory per CPU, and the numbers miss up to some "
          "tens of pages of each CPU. Filters apply to the killed process.",
      .overhead =
          "one hook per run of reclaim by a task and per signal, which return immediately; nothing "
          "else until a process is killed",
      .examples = {{"oomkill", "all kills, of the machine and of memory cgroups"},
                   {"oomkill -K", "with the kernel stack of the allocation"},
                   {"oomkill -c system.slice/nginx.service", "kills in one service"},
                   {"oomkill --json", "all fields, for a script"}},
      .questions = {{"Which process was killed because memory ran out?", "oomkill"},
                    {"Was it the machine's memory or the limit of a container?", "oomkill"},
                    {"Which allocation led to the kill?", "oomkill -K"}},
      .differs = {{Difference::both,
                   "The resident memory of the killed process is shown, and a process that was "
                   "already exiting is marked: it gets no signal. No kprobe is needed."},
                  {Difference::both,
                   "A line of titles comes first, and more text follows the load averages, which "
                   "end the line there."}},
      .object = skeleton<oomkill_bpf>(),
      .options = joined({{shared::kernel_stack(), shared::duration()},
                         belonging_to("kernel-stack", {shared::stack_depth()}),
                         shared::task_filters()}),
      .hooks = {{.name = "killed processes",
                 .candidates = {{{progs::on_victim}, {has_arguments("mark_victim", 2)}},
                                {.programs = {progs::on_victim_number},
                                 .caveat = "of processes that were already exiting only those are "
                                           "shown that found no memory themselves"}},
                 .instead = "look for \"Killed process\" in the kernel's log (dmesg)"},
                {"reclaim of the machine", {{{progs::on_direct}}}},
                {"reclaim of memory cgroups",
                 {{{progs::on_memcg}}},
                 {},
                 "which cgroup's limit was reached is not known: this kernel is built without "
                 "memory cgroups"},
                {"signals of the kernel", {{{progs::on_signal}}}}},
      .report =
          events<Event>(
              {who<&Event::victim>(id::cgroup),
               derived<Event, sentence>("text", "EVENT", as::rest, "what happened")
                   .in_text()
                   .asking(),
               with("json",
                    {who<&Event::trigger>(id::comm.keyed("trigger_comm", "TCOMM"),
                                          id::pid.keyed("trigger_pid", "TPID"),
                                          id::tid.keyed("trigger_tid", "TTID")),
                     who<&Event::victim>(id::comm, id::pid, id::tid, id::uid),
                     named<&Event::kind, kKinds>("kind", "KIND", as::text,
                                                 "machine, or memcg: limit of a memory cgroup"),
                     derived<Event, [](const Event& e) { return bool(e.killed); }>(
                         "killed", "KILLED", as::small, "false: it was already exiting"),
                     derived<Event, limit_bytes>("limit_bytes", "LIMIT", as::number,
                                                 "total memory that could be used"),
                     derived<Event, bytes<&Event::anon>>("anon_rss_bytes", "ANON", as::number,
                                                         "anonymous memory of the killed process"),
                     derived<Event, bytes<&Event::file>>("file_rss_bytes", "FILE", as::number,
                                                         "file pages that it had mapped"),
                     derived<Event, bytes<&Event::shmem>>("shmem_rss_bytes", "SHMEM", as::number,
                                                          "shared memory that it had mapped"),
                     field<&Event::oom_score_adj>("oom_score_adj", "ADJ", as::small,
                                                  "its /proc/PID/oom_score_adj"),
                     field<&Event::order>("order", "ORDER", as::small,
                                          "2^order pages were requested; -1: not known"),
                     field<&Event::gfp>("gfp_flags", "GFP", as::gfp, "flags of the allocation"),
                     derived<Event, [](const Event& e) { return e.memcg.id; }>(
                         "memcg_id", "MEMCG", as::number,
                         "memory cgroup of the killed process; 0: none"),
                     derived<Event, memcg_path>("memcg_path", "PATH", as::text,
                                                "path of this memory cgroup")})},
              "kernel-stack")
              .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .announce = "Tracing OOM kills",
  };
}
