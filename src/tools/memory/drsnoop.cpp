// drsnoop: allocations that had to reclaim memory directly.
#include "memory/drsnoop.h"

#include "coretap/skeleton.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "drsnoop.skel.h"

using namespace coretap;
using Event = drsnoop_event;

namespace {

constexpr std::string_view kKinds[] = {"direct", "memcg", "node"};
static_assert(std::size(kKinds) == DRSNOOP_KINDS);

std::uint64_t free_kb(const Event&) { return memory_kb("MemFree"); }

}  // namespace

TOOL(drsnoop) {
  return {
      .name = "drsnoop",
      .summary = "direct reclaim: allocations that had to free memory first",
      .description =
          "One line each time a task that allocates memory must first reclaim pages itself: how "
          "long it was held up, and how many pages it reclaimed. This stall is visible to the "
          "task's users.\n\n"
          "--memcg adds reclaim that a memory cgroup's limit causes, and reclaim of a single NUMA "
          "node. FREE(KB) is the machine's free memory when the line is printed.",
      .overhead = "two hooks per reclaim, which is itself rare and slow: not measurable",
      .examples = {{"drsnoop", "all direct reclaim"},
                   {"drsnoop -T -e", "with times, order, flags and free memory"},
                   {"drsnoop -M -p 181",
                    "what process 181 waits for, including its cgroup's limit"},
                   {"drsnoop -K -d 10", "ten seconds, with kernel stacks"}},
      .questions = {{"Which process is held up because free memory is short?", "drsnoop -T"},
                    {"Is a container slow at its memory limit?",
                     "drsnoop -M -c system.slice/nginx.service"},
                    {"Which code allocates when memory is short?", "drsnoop -K -d 10"}},
      .differs = {{Difference::libbpf_tools,
                   "PID is the process, and the time of day is a column with -T, as in bcc. There, "
                   "the columns are TIME and TID."}},
      .object = skeleton<drsnoop_bpf>(),
      .options = joined(
          {{shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::name('n'),
            shared::cgroup(), shared::duration('d'), shared::timestamp(), shared::print_uid(),
            shared::extended(), shared::kernel_stack()},
           belonging_to("kernel-stack", {shared::stack_depth()}),
           {flag('M', "memcg", "also reclaim by a memory cgroup's limit and by a NUMA node")}}),
      .hooks = {{"direct reclaim", {{{progs::on_direct_begin, progs::on_direct_end}}}},
                {"memory cgroup reclaim",
                 {{{progs::on_memcg_begin, progs::on_memcg_end}}},
                 "memcg"},
                {"node reclaim",
                 {{{progs::on_node_begin, progs::on_node_end}}},
                 "memcg",
                 "reclaim of a single node is not seen: this kernel is built without NUMA"}},
      .report =
          events<Event>(
              {who<&Event::who>(id::uid, id::comm, id::pid),
               field<&Event::latency_ns>("latency_ns", "LAT(ms)", as::milliseconds,
                                         "time in reclaim"),
               field<&Event::reclaimed>("reclaimed_pages", "PAGES", as::pages, "pages reclaimed"),
               derived<Event, free_kb>("free_kb", "FREE(KB)", as::number,
                                       "free memory of the machine when printed")
                   .with("extended")
                   .asking(),
               who<&Event::who>(id::tid.with("extended")),
               named<&Event::kind, kKinds>("kind", "KIND", as::wide(as::text, -6),
                                           "direct, memcg or node")
                   .with("extended|memcg"),
               field<&Event::node>("node", "NODE", as::small,
                                   "NUMA node of the CPU, or the one reclaimed")
                   .bounded()
                   .with("extended"),
               field<&Event::order>("order", "ORDER", as::small, "2^order pages were requested")
                   .with("extended"),
               field<&Event::gfp>("gfp_flags", "GFP", as::gfp, "flags of the allocation")
                   .with("extended"),
               who<&Event::who>(id::cgroup)},
              "kernel-stack")
              .timed_at_begin(),
      .announce = "Tracing direct reclaim",
  };
}
