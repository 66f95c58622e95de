// memleak: allocated memory that was not freed, by the stack that allocated it.
#include "memory/memleak.h"

#include "coretap/config.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "memleak.skel.h"
#include "tools/memory/memleak/report_outstanding.hpp"

using namespace coretap;
using Opt = rodata_of<memleak_bpf>;
using Event = memleak_event;

namespace {

// Traces the memory of programs if any is named, else the kernel's.
constexpr When kUser = "task-filter|library|symbols-prefix";
constexpr When kKernel = "!task-filter|library|symbols-prefix";

Result<void> check(const Config& c) {
  if (!c.rows.sort.empty() && c.rows.sort != "size" && c.rows.sort != "count")
    return usage("--sort: there is no key '" + c.rows.sort + "'", "there are: size, count");
  if (c.number("min-size", 0) > c.number("max-size", UINT64_MAX))
    return usage("--min-size is above --max-size", "no allocation can be both");
  return {};
}

constexpr std::string_view kFunctions[] = {
    "malloc",           "calloc",        "realloc",         "reallocarray",
    "posix_memalign",   "aligned_alloc", "valloc",          "memalign",
    "pvalloc",          "mmap",          "mremap",          "kmalloc",
    "kmem_cache_alloc", "page_alloc",    "percpu_alloc",    "free",
    "munmap",           "kfree",         "kmem_cache_free", "page_free",
    "percpu_free"};
static_assert(std::size(kFunctions) == MEMLEAK_FUNCTIONS);

Hook function_hook(std::string_view name, ProgramName begin, std::string_view without) {
  return {name, {{{begin, progs::on_allocated}}}, kUser, without};
}

}  // namespace

TOOL(memleak) {
  return {
      .name = "memleak",
      .summary = "memory that was allocated and not freed, by stack",
      .description =
          "Which call paths hold memory: outstanding allocations, made since tracing began and not "
          "freed yet, summed by the stack that allocated them; the ten largest stacks, every five "
          "seconds. A stack that stays and grows from report to report leaks. Only allocations "
          "older than --older are shown.\n\n"
          "With a process, another task filter, a command or a library it traces the memory of "
          "programs: malloc and its relatives in the C library (in another allocator with "
          "--library) and mmap, by user stack. An allocation made within another one is part of "
          "it. A block that realloc moves belongs to its last realloc. What a process had not "
          "freed when it exited is shown once more, marked; on exec it is dropped. A child's copy "
          "of its parent's memory is not counted.\n\n"
          "Otherwise it traces the kernel's memory: slab objects and pages, by kernel stack; with "
          "--percpu per-CPU allocations instead. Slabs themselves are pages too. Some paths free "
          "in bulk without a tracepoint (kfree_rcu, kmem_cache_free_bulk): objects freed there "
          "count as outstanding until their address is allocated again.",
      .overhead =
          "in programs, two breakpoints and a stack walk per allocation and one breakpoint per "
          "free, a microsecond or more each; with --pid, other processes pay nothing. In the "
          "kernel, two hooks for each of its very frequent allocations: use --sample-rate there",
      .examples = {{"memleak -p 1234", "what this process holds, every 5 seconds"},
                   {"memleak -p 1234 -o 60000 30", "what is older than a minute, every 30 seconds"},
                   {"memleak -a -- ./server", "a command, with the address of each allocation"},
                   {"memleak -p 1234 -s 100", "one of 100 allocations, as an estimate of all"},
                   {"memleak -p 1234 -O /usr/lib/libjemalloc.so.2", "another allocator"},
                   {"memleak -s 16 10 6", "the kernel for a minute"},
                   {"memleak -p 1234 --duration 60 --svg leaks.svg",
                    "outstanding allocations after a minute, as a flame graph of bytes"}},
      .questions = {{"Does this process leak memory, and where?", "memleak -p 1234 -o 60000 30"},
                    {"Which code holds all that memory?",
                     "memleak -p 1234 --duration 60 --svg leaks.svg"},
                    {"Does the kernel leak memory (slab grows)?", "memleak -s 16 10 6"}},
      .differs = {{Difference::both,
                   "With -s N one of N addresses is sampled, and the sums are estimates of all "
                   "allocations. Peers sample by the clock, and their sums are those of the "
                   "sample."},
                  {Difference::both,
                   "An allocation that realloc moves, a failed realloc and a mapping that is "
                   "unmapped in parts are followed. -t prints to the output instead of the "
                   "kernel's trace_pipe."}},
      .object = skeleton<memleak_bpf>(),
      .positionals = shared::interval_count(5),
      .options = joined(
          {{shared::pid(), shared::tid(0), shared::uid(), shared::comm(), shared::cgroup(0),
            shared::command('c'), shared::library('O', "obj"), shared::symbols_prefix('S')},
           belonging_to(kKernel,
                        {flag('P', "percpu",
                              "trace per-CPU allocations of the kernel (sizes are for one CPU)")}),
           {number(
                'o', "older", "MS",
                "only allocations that are outstanding for MS milliseconds or more, as in bcc: 10000 is "
                "ten seconds (default: 500)",
                {}),
            number('z', "min-size", "BYTES", "only allocations of at least BYTES bytes",
                   setting(&Opt::min_bytes)),
            number('Z', "max-size", "BYTES", "only allocations of BYTES bytes or less",
                   setting(&Opt::max_bytes)),
            number('s', "sample-rate", "N",
                   "only one of N addresses, different ones in each run; sums are then estimates",
                   Range{.least = 1}, setting(&Opt::sample_one_in)),
            flag('C', "combined-only",
                 "per-stack totals only (cheaper); partly unmapped regions count in full",
                 setting(&Opt::sum_by_site)),
            flag(
                'F', "wa-missing-free",
                "treat reuse of a live address as a missed free (always on; kept for compatibility)"),
            flag('a', "show-allocs", "the address and size of each allocation"),
            flag('t', "trace",
                 "each allocation and free as it happens, instead of outstanding allocations",
                 setting(&Opt::trace)),
            shared::top('T'),
            shared::sort(0),
            shared::folded(),
            shared::svg(),
            shared::color_by(),
            shared::pprof(),
            shared::lines(),
            shared::offset(0),
            shared::stack_depth(),
            shared::stack_storage(),
            shared::unwind(),
            shared::unwind_memory(),
            shared::max_keys()}}),
      .hooks = {function_hook("malloc", progs::on_malloc, ""),
                {"free", {{{progs::on_free}}}, kUser},
                function_hook("calloc", progs::on_calloc, "calloc is not seen"),
                function_hook("realloc", progs::on_realloc, "realloc is not seen"),
                function_hook("reallocarray", progs::on_reallocarray, "reallocarray is not seen"),
                function_hook("posix_memalign", progs::on_posix_memalign,
                              "posix_memalign is not seen"),
                function_hook("aligned_alloc", progs::on_aligned_alloc,
                              "aligned_alloc is not seen"),
                function_hook("memalign", progs::on_memalign, "memalign is not seen"),
                function_hook("valloc", progs::on_valloc, "valloc is not seen"),
                function_hook("pvalloc", progs::on_pvalloc, "pvalloc is not seen"),
                {"mmap",
                 {{{progs::on_mmap, progs::on_allocated, progs::on_mremap, progs::on_allocated,
                    progs::on_munmap}}},
                 kUser,
                 "mappings are not seen"},
                {"ends of processes", {{{progs::on_process_exit}}}, kUser},
                {"programs that processes run", {{{progs::on_process_exec}}}, kUser},
                {"slab objects",
                 {{{progs::on_kmalloc, progs::on_kmem_cache_alloc, progs::on_kfree,
                    progs::on_kmem_cache_free},
                   {has_field("kmem_cache", "size")}}},
                 "!task-filter|library|symbols-prefix|percpu"},
                {"slab objects of a node",
                 {{{}, {has_arguments("kmalloc", 6)}},
                  {{progs::on_kmalloc_node, progs::on_kmem_cache_alloc_node}}},
                 "!task-filter|library|symbols-prefix|percpu"},
                {"pages",
                 {{{progs::on_page_alloc, progs::on_page_free}}},
                 "!task-filter|library|symbols-prefix|percpu"},
                {"per-CPU memory", {{{progs::on_percpu_alloc, progs::on_percpu_free}}}, "percpu"}},
      .maps = {{maps::allocs, MapSize::objects, kUser},
               {maps::allocs, MapSize::objects, kKernel, MapSize::preallocated},
               {maps::stacks, MapSize::stacks, kKernel, MapSize::preallocated},
               {maps::alloc_sums, MapSize::stacks, "combined-only"},
               {maps::alloc_sums, MapSize::stacks, kKernel, MapSize::preallocated}},
      .report = OutstandingReport{},
      .other_reports =
          {{"trace",
            events<Event>(
                {who<&Event::who>(id::pid, id::tid.with({}), id::comm),
                 named<&Event::function, kFunctions>("function", "FUNCTION",
                                                     as::wide(as::text, -16), "what was called"),
                 derived<Event, [](const Event& e) { return value_if(e.sized, e.bytes); }>(
                     "bytes", "BYTES", as::number, "requested size; null for frees"),
                 derived<Event, [](const Event& e) { return unless_0(e.old); }>(
                     "old_address", "OLD", as::pointer,
                     "block passed to realloc or mremap; null: none"),
                 field<&Event::address>("address", "ADDRESS", as::pointer,
                                        "address of the memory; 0: the allocation failed; null: a "
                                        "hidden kernel address")})
                .timed({{TimeColumn::wall, "TIME", 12, ""}})
                .high_rate()}},
      .announce = "Tracing outstanding memory allocations",
      .exclusive =
          [] {
            std::vector<std::pair<std::string_view, std::string_view>> rules = {
                {"combined-only", "show-allocs"},
                {"combined-only", "older"},
                {"folded", "json"},
                {"folded", "csv"},
                {"folded", "show-allocs"}};
            for (auto* other : {"combined-only", "show-allocs", "older", "top", "sort", "folded",
                                "svg", "color-by", "pprof", "min-size", "max-size"})
              rules.emplace_back("trace", other);
            return rules;
          }(),
      .check = check,
  };
}
