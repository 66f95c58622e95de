// oomkill: processes that are killed because there is no memory left.
#include "memory/oomkill.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/files.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "kernel/load_averages.hpp"
#include "oomkill.skel.h"

using namespace coretap;
using Event = oomkill_event;

namespace {

constexpr std::string_view kKinds[] = {"machine", "memcg"};
static_assert(std::size(kKinds) == OOMKILL_KINDS);

std::uint64_t in_bytes(std::uint64_t pages) {
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}
template <auto Member>
std::uint64_t bytes(const Event& e) {
  return in_bytes(e.*Member);
}

std::uint32_t trigger_pid(const Event& e) { return e.trigger.pid; }
std::uint32_t trigger_tid(const Event& e) { return e.trigger.tid; }
std::string trigger_comm(const Event& e) {
  return {e.trigger.comm, strnlen(e.trigger.comm, sizeof e.trigger.comm)};
}
std::string victim_comm(const Event& e) {
  return {e.victim.comm, strnlen(e.victim.comm, sizeof e.victim.comm)};
}
bool killed(const Event& e) { return e.killed; }

Value memcg_path(const Event& e) {
  if (!e.memcg) return {};
  return path_of({e.path, e.path_bytes}, e.path_cut);
}

/// As peers have it: memory and swap of the machine, or the limit of the memory cgroup.
std::uint64_t limit_bytes(const Event& e) {
  if (e.kind == OOMKILL_MEMCG) return in_bytes(e.limit);
  return (memory_kb("MemTotal") + memory_kb("SwapTotal")) << 10;
}

template <auto Member>
Value load(const Event&) {
  auto averages = load_averages();
  if (!averages) return {};
  return (*averages).*Member;
}

std::string loads() {
  auto a = load_averages();
  if (!a) return "-";
  return fmt::format("{:.2f} {:.2f} {:.2f} {}/{}", a->one, a->five, a->fifteen, a->running,
                     a->total);
}

std::string sentence(const Event& e) {
  auto memcg = e.kind == OOMKILL_MEMCG
                   ? ", limit of the memory cgroup of " + std::get<std::string>(memcg_path(e))
                   : std::string();
  return fmt::format(
      "Triggered by PID {} (\"{}\"), {} of PID {} (\"{}\"), {} pages, loadavg: {}{}, anon-rss: {} "
      "kB, file-rss: {} kB, shmem-rss: {} kB",
      e.trigger.pid, trigger_comm(e), e.killed ? "OOM kill" : "OOM, end already under way,",
      e.victim.pid, victim_comm(e), limit_bytes(e) / in_bytes(1), loads(), memcg,
      in_bytes(e.anon) >> 10, in_bytes(e.file) >> 10, in_bytes(e.shmem) >> 10);
}

}  // namespace

TOOL(oomkill) {
  return {
      .name = "oomkill",
      .summary = "processes killed because memory ran out, and which task triggered it",
      .description =
          "One line per process that the kernel kills because there is no memory left, in the whole "
          "machine or below the limit of a memory cgroup: the task whose allocation triggered it, "
          "the victim, the pages that could be used in all (memory and swap of the machine, or the "
          "limit of the memory cgroup), the load averages, and the victim's resident memory by "
          "kind. A process that was ending already is marked so: it gets no signal.\n\n"
          "From 6.2 on the kernel counts resident memory per CPU, and the numbers lack up to some "
          "tens of pages of each CPU. Filters ask about the victim.",
      .overhead =
          "one hook per run of reclaim by a task and per signal, which return at once; nothing "
          "else until a process is killed",
      .examples = {{"oomkill", "all of the machine and of memory cgroups"},
                   {"oomkill -K", "with the kernel stack of the allocation"},
                   {"oomkill -c system.slice/nginx.service", "victims of one service"},
                   {"oomkill --json", "all that is known, for a script"}},
      .questions = {{"Which process was killed because memory ran out?", "oomkill"},
                    {"Was it the machine's memory or the limit of a container?", "oomkill"},
                    {"Which allocation led to the kill?", "oomkill -K"}},
      .object = skeleton<oomkill_bpf>(),
      .options = joined({{shared::kernel_stack(), shared::duration()},
                         belonging_to("kernel-stack", {shared::stack_depth()}),
                         shared::task_filters()}),
      .hooks = {{.name = "victims",
                 .candidates = {{{"on_victim"}, {has_arguments("mark_victim", 2)}}},
                 .instead = "look for \"Killed process\" in the kernel's log (dmesg)"},
                {"reclaim of the machine", {{{"on_direct"}}}},
                {"reclaim of memory cgroups",
                 {{{"on_memcg"}}},
                 {},
                 "whose limit was reached is not known: this kernel is built without memory "
                 "cgroups"},
                {"signals of the kernel", {{{"on_signal"}}}}},
      .report =
          events<Event>(
              {derived<Event, sentence>("text", "EVENT", as::rest, "what happened").in_text(),
               derived<Event, trigger_comm>("trigger_comm", "TCOMM", as::comm,
                                            "task whose allocation had no memory left")
                   .with("json"),
               derived<Event, trigger_pid>("trigger_pid", "TPID", as::pid, "its process")
                   .with("json"),
               derived<Event, trigger_tid>("trigger_tid", "TTID", as::pid, "its thread")
                   .with("json"),
               who<&Event::victim>(id::comm.with("json"), id::pid.with("json"), id::tid,
                                   id::uid.with("json"), id::cgroup),
               named<&Event::kind, kKinds>("kind", "KIND", as::text,
                                           "machine, or memcg: the limit of a memory cgroup")
                   .with("json"),
               derived<Event, killed>("killed", "KILLED", as::small, "false: it was ending already")
                   .with("json"),
               derived<Event, limit_bytes>("limit_bytes", "LIMIT", as::number,
                                           "memory that could be used in all")
                   .with("json"),
               derived<Event, bytes<&Event::anon>>("anon_rss_bytes", "ANON", as::number,
                                                   "anonymous memory of the victim")
                   .with("json"),
               derived<Event, bytes<&Event::file>>("file_rss_bytes", "FILE", as::number,
                                                   "file pages that it had mapped")
                   .with("json"),
               derived<Event, bytes<&Event::shmem>>("shmem_rss_bytes", "SHMEM", as::number,
                                                    "shared memory that it had mapped")
                   .with("json"),
               derived<Event, bytes<&Event::swapped>>("swap_bytes", "SWAP", as::number,
                                                      "its memory that was swapped out")
                   .with("json"),
               derived<Event, bytes<&Event::total>>("virtual_bytes", "VIRT", as::number,
                                                    "size of its address space")
                   .with("json"),
               field<&Event::page_tables>("page_tables_bytes", "TABLES", as::number,
                                          "its page tables")
                   .with("json"),
               field<&Event::oom_score_adj>("oom_score_adj", "ADJ", as::small,
                                            "its /proc/PID/oom_score_adj")
                   .with("json"),
               field<&Event::order>("order", "ORDER", as::small,
                                    "2^order pages were wanted; -1: not known")
                   .with("json"),
               field<&Event::gfp>("gfp_flags", "GFP", as::gfp, "flags of the allocation")
                   .with("json"),
               field<&Event::memcg>("memcg_id", "MEMCG", as::number,
                                    "memory cgroup of the victim; 0: none")
                   .with("json"),
               derived<Event, memcg_path>("memcg_path", "PATH", as::text, "its path").with("json"),
               derived<Event, load<&LoadAverages::one>>("load_1m", "LOAD1", as::number,
                                                        "load average of the last minute")
                   .with("json"),
               derived<Event, load<&LoadAverages::five>>("load_5m", "LOAD5", as::number,
                                                         "load average of five minutes")
                   .with("json"),
               derived<Event, load<&LoadAverages::fifteen>>("load_15m", "LOAD15", as::number,
                                                            "load average of fifteen minutes")
                   .with("json")},
              "kernel-stack")
              .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .announce = "Tracing OOM kills",
  };
}
