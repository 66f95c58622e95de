// swapout: memory written to swap, by its owner and the task that reclaims it.
#include "memory/swapout.h"

#include "coretap/reclaim.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "swapout.skel.h"

using namespace coretap;
using Key = swapout_key;
using Counts = swapout_counts;
using Line = Row<Key, Counts>;

namespace {

constexpr std::string_view kOwners[] = {"process", "several", "shmem", "unknown"};
static_assert(std::size(kOwners) == SWAPOUT_OWNERS);

Value pid(const Line& l) { return value_if(l.key.owner == SWAPOUT_ONE, l.key.pid); }
Value comm(const Line& l) {
  return l.key.owner == SWAPOUT_ONE ? Value(text_in(l.key.comm)) : Value();
}
Value cgroup_id(const Line& l) { return unless_0(l.key.cgroup); }
Value cgroup(const Line& l, const FieldContext& context) {
  if (!l.key.cgroup || !context.cgroup_name) return {};
  auto name = context.cgroup_name(l.key.cgroup, CgroupName::path);
  return name.empty() ? Value() : Value(std::move(name));
}

}  // namespace

TOOL(swapout) {
  return {
      .name = "swapout",
      .summary = "memory written to swap, by its owner and the task that reclaims it",
      .description =
          "Pages that reclaim writes to swap, by the process that they belong to and by the task "
          "that reclaims, with the cause: a task that found no free memory (direct), kswapd, the "
          "limit of a memory cgroup or a write to its memory.reclaim (memcg), or other, such as "
          "madvise(2).\n\n"
          "The kernel does not keep the process of a page. It is found by the mappings that the "
          "page can be in: OWNER is process if only one process has such a mapping. It is several "
          "if there are more, as after fork(2) without exec(2), or if there are too many mappings "
          "to look at; shmem for shared memory and tmpfs, which no process owns; unknown if the "
          "process has ended or KSM merged the page. CGROUP is the memory cgroup that the page is "
          "charged to, which the kernel does keep.\n\n"
          "Filters apply to the owner: with them, only pages with one owner are counted. Pages are "
          "counted when they are handed to the swap device; with zswap they may stay in memory, and "
          "since 6.12 pages with nothing but zeros are only marked (swpout_zero in /proc/vmstat). "
          "Pages that are still in swap unchanged are freed without a write, and are not counted.",
      .overhead =
          "a hook per page written by reclaim, two per run of reclaim; no cost while memory "
          "is free",
      .examples = {{"swapout", "each second"},
                   {"swapout 10 6", "a minute, every ten seconds"},
                   {"swapout -p 181", "only memory of process 181"}},
      .questions = {{"Whose memory is swapped out?", "swapout"},
                    {"Which task or cgroup limit makes the kernel swap?", "swapout 10 1"}},
      .object = skeleton<swapout_bpf>(),
      .positionals = shared::interval_count(1),
      .options = {shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup(),
                  shared::top('r'), shared::sort(), shared::max_keys()},
      .hooks = {{"pages written", {{{progs::on_write_folio}}, {{progs::on_write_page}}}},
                {"direct reclaim", {{{progs::on_direct_begin, progs::on_direct_end}}}},
                {"memory cgroup reclaim",
                 {{{progs::on_memcg_begin, progs::on_memcg_end}}},
                 {},
                 "this kernel is built without memory cgroups: owners are not known"}},
      .report =
          table<Key, Counts>(
              maps::pages,
              {derived<Line, comm>("comm", "COMM", as::comm,
                                   "command name of the owner; null: not one process")
                   .or_null()
                   .key_part(),
               derived<Line, pid>("pid", "PID", as::pid, "the owner; null: not one process")
                   .or_null()
                   .key_part(),
               named_key<Line, &Key::owner, kOwners>("owner", "OWNER", as::wide(as::text, -7),
                                                     "process, several, shmem or unknown"),
               named_key<Line, &Key::cause, kReclaimCauses>(
                   "cause", "CAUSE", as::wide(as::text, -6), "direct, kswapd, memcg or other"),
               of_key<Line, &Key::by_comm>("by_comm", "BY", as::comm,
                                           "command name of the task that reclaims"),
               of_key<Line, &Key::by_pid>("by_pid", "BYPID", as::pid, "its process"),
               of_value<Line, &Counts::count>("count", "COUNT", as::pages,
                                              "pages, large and small ones"),
               of_value<Line, &Counts::bytes>("swapped_out_bytes", "WRITE(KB)",
                                              as::wide(as::kilobytes, 9), "bytes written to swap"),
               derived<Line, cgroup_id>("cgroup_id", "", as::number,
                                        "memory cgroup that the page is charged to")
                   .or_null()
                   .key_part()
                   .with("json"),
               derived<Line, cgroup>("cgroup", "CGROUP", as::rest, "its path")
                   .or_null()
                   .key_part()},
              "swapped_out_bytes,count")
              .without_owner("the owner of the pages is part of them"),
      .announce = "Tracing swap-outs",
  };
}
