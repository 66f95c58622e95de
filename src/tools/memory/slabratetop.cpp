// slabratetop: allocations from the kernel's slab caches.
#include "memory/slabratetop.h"

#include <fmt/format.h>

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "slabratetop.skel.h"

using namespace coretap;
using Key = slabratetop_key;
using Counts = slabratetop_counts;
using Line = Row<Key, Counts>;

namespace {

/// Above the size of any kmalloc object, below any kernel address.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;
/// The same function allocates larger sizes from the page allocator.
constexpr std::uint64_t kMostSlabBytes = 8192;

Value cache(const Line& l, const FieldContext& context) {
  std::uint64_t n = l.key.cache;
  if (n > kMostBytes) {
    auto* name = context.row_text(l.key);
    return name ? Value(*name) : Value();
  }
  if (n > kMostSlabBytes) return fmt::format("[pages {}k]", n >> 10);
  return n % 1024 ? fmt::format("kmalloc-{}", n) : fmt::format("kmalloc-{}k", n >> 10);
}

}  // namespace

TOOL(slabratetop) {
  return {
      .name = "slabratetop",
      .summary = "the slab caches from which most objects are allocated, as a screen",
      .description =
          "Objects that the kernel allocates from its slab caches, and their bytes, by cache: "
          "names and sizes are those of /proc/slabinfo, where similar caches may have been merged. "
          "kmalloc-SIZE is the sum of all kmalloc caches of that size (including kmalloc-cg, "
          "kmalloc-rcl and so on); [pages SIZE] is memory that kmalloc gets from the page "
          "allocator.\n\n"
          "Allocations that fail count too. Not seen: objects that the kernel allocates in bulk, "
          "such as some of the network stack's, and page tables, which do not come from a slab.",
      .overhead = "a hook per allocation, counted in the kernel, per CPU",
      .examples = {{"slabratetop", "redrawn every second; q quits"},
                   {"slabratetop -C 5 2", "two reports of five seconds, one after another"},
                   {"slabratetop -s bytes -r 5", "the five with the most bytes"},
                   {"slabratetop -p 181", "what the kernel allocates for process 181"}},
      .questions = {{"Which objects does the kernel allocate most often?", "slabratetop"},
                    {"Which kernel objects are allocated for a process?",
                     "slabratetop -p 181 -C 10 1"}},
      .differs = {{Difference::both,
                   "Allocations by kmem_cache_alloc_lru, which inodes and dentries come from, "
                   "and by kmalloc count, too."},
                  {Difference::bcc, "Linux 6.8 and later is supported."}},
      .object = skeleton<slabratetop_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined({shared::screen(), {shared::max_keys()}, shared::task_filters()}),
      .hooks = {{"allocations from caches",
                 {{{progs::on_alloc}, {has_arguments("kmalloc", 6)}},  // both changed in 6.1
                  {{progs::on_call, progs::on_node_call}},
                  {{progs::on_call_kprobe, progs::on_node_call_kprobe}}}},
                {"kmalloc", {{{progs::on_kmalloc}}}},
                {"kmalloc for a node",
                 {{{}, {has_arguments("kmalloc", 6)}}, {{progs::on_kmalloc_node}}}}},
      .maps = {{maps::caches, MapSize::slab_caches}},
      .report =
          table<Key, Counts>(
              maps::caches,
              {derived<Line, cache>("cache", "CACHE", as::wide(as::text, -32), "name of the cache")
                   .or_null()
                   .capped(),
               of_value<Line, &Counts::allocs>("allocs", "ALLOCS", as::wide(as::number, 8),
                                               "objects allocated"),
               of_value<Line, &Counts::bytes>("bytes", "BYTES", as::number, "their bytes")},
              "bytes,allocs", 20)
              .sorted_also_by({{"name", "cache"}, {"count", "allocs"}, {"size", "bytes"}})
              .on_screen(),
      .announce = "Tracing slab allocations",
  };
}
