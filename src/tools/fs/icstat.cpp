// icstat: look-ups and misses of the inode cache.
#include "fs/icstat.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "icstat.skel.h"

using namespace coretap;
using Sums = icstat_sums;

namespace {

/// The interval may end between the count of a look-up and that of its miss.
Value ratio(const Sums& s) {
  if (!s.lookups || s.misses > s.lookups) return {};
  return static_cast<double>(s.lookups - s.misses) / static_cast<double>(s.lookups);
}

}  // namespace

TOOL(icstat) {
  return {
      .name = "icstat",
      .summary = "inode cache look-ups and misses",
      .description =
          "Each interval: look-ups of inodes in the inode cache (REFS), those that did not find "
          "the inode (MISSES), and the share of those that did. An inode is looked up when a name "
          "that is not in the directory-entry cache is opened, or by a file handle (NFS). After a "
          "miss, the file system reads the inode.\n\n"
          "The tool counts calls of the functions that file systems use (iget_locked, "
          "iget5_locked, ilookup), once for each look-up. Not seen: xfs, which has its own cache, "
          "and in-memory file systems, whose inodes are never looked up.",
      .overhead = "a hook per look-up, counted in the kernel, per CPU",
      .examples = {{"icstat", "a line per second"},
                   {"icstat -T 5 12", "a minute, every five seconds, with the time"},
                   {"icstat -p 181", "what process 181 looks up"}},
      .questions = {{"Do file systems read inodes repeatedly?", "icstat"}},
      .object = skeleton<icstat_bpf>(),
      .positionals = shared::interval_count(1),
      .options = {shared::timestamp(), shared::pid(), shared::tid(), shared::uid(), shared::comm(),
                  shared::cgroup()},
      .hooks = {{.name = "look-ups",
                 .candidates =
                     {{{progs::by_number, progs::by_test, progs::if_cached, progs::by_test_rcu}},
                      {{progs::by_number_kprobe, progs::by_test_kprobe, progs::if_cached_kprobe,
                        progs::by_test_rcu_kprobe}},
                      {{progs::by_number, progs::by_test, progs::if_cached}},
                      {{progs::by_number_kprobe, progs::by_test_kprobe, progs::if_cached_kprobe}}},
                 .instead = "slabratetop counts inode allocations, such as that at each miss: "
                            "ext4_inode_cache and so on"}},
      .report = sums<Sums>(maps::inodes_cpus,
                           {field<&Sums::lookups>("lookups", "REFS", as::number, "look-ups"),
                            field<&Sums::misses>("misses", "MISSES", as::number,
                                                 "those that did not find the inode"),
                            derived<Sums, ratio>("hit_ratio", "HIT%", as::percent,
                                                 "share of those that found it, 0 to 1")}),
      .announce = "Tracing look-ups of inodes",
  };
}
