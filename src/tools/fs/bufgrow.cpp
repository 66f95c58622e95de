// bufgrow: the processes that make the page cache of block devices grow.
#include "fs/bufgrow.h"

#include <unistd.h>

#include "bufgrow.skel.h"
#include "coretap/kernel.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Opt = rodata_of<bufgrow_bpf>;
using Key = bufgrow_key;
using Counts = bufgrow_counts;
using Line = Row<Key, Counts>;

namespace {

template <auto Member>
std::uint64_t bytes(const Line& l) {
  return l.value.*Member * page_bytes();
}

}  // namespace

TOOL(bufgrow) {
  return {
      .name = "bufgrow",
      .summary = "growth of the buffer cache (pages of block devices), by process",
      .description =
          "Pages of block devices that processes bring into the page cache (KB), by reading a "
          "device itself or a file system's metadata, or by writing to it, and pages that are "
          "removed from it (FREED_KB). Buffers in /proc/meminfo grows and shrinks by them. Pages "
          "that were read ahead count, too, and a large folio counts as many pages as it has.\n\n"
          "The process is the current one: pages that memory reclaim removes count for kswapd, or "
          "for a process in direct reclaim. Pages of files are not counted (see cachestat); some "
          "file systems, such as xfs and btrfs, have their own caches for their metadata.",
      .overhead = "a hook per page that is added to or removed from the page cache",
      .examples = {{"bufgrow", "all processes until Ctrl-C"},
                   {"bufgrow -D 5 12", "a minute, every five seconds, by disk too"},
                   {"bufgrow -d sda -p 181", "what process 181 brings in from one disk"}},
      .questions = {{"Why does Buffers grow?", "bufgrow 10 1"},
                    {"Which process reads a device, bypassing its file system?", "bufgrow -D"}},
      .object = skeleton<bufgrow_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined({{flag('D', "disks", "rows by disk, too", setting(&Opt::by_disk)),
                          shared::disk(), shared::top('r'), shared::sort(), shared::max_keys()},
                         shared::task_filters()}),
      .hooks = {{"pages added", {{{progs::on_add}}}}, {"pages removed", {{{progs::on_remove}}}}},
      .report = table<Key, Counts>(
                    maps::buffers,
                    {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process"),
                     of_key<Line, &Key::comm>("comm", "COMM", as::comm, "its command name"),
                     of_key<Line, &Key::disk>("disk", "DISK", as::disk, "the disk").only("disks"),
                     derived<Line, bytes<&Counts::added>>(
                         "added_bytes", "KB", as::wide(as::kilobytes, 9), "brought into the cache")
                         .counter(),
                     derived<Line, bytes<&Counts::removed>>(
                         "removed_bytes", "FREED_KB", as::wide(as::kilobytes, 9), "removed from it")
                         .counter()},
                    "added_bytes,removed_bytes")
                    .counted_by(2),
      .announce = "Tracing the buffer cache",
  };
}
