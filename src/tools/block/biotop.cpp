// biotop: the processes that do the most block I/O.
#include "block/biotop.h"

#include "biotop.skel.h"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Opt = rodata_of<biotop_bpf>;
using Line = Row<biotop_key, biotop_value>;

namespace {

constexpr std::uint32_t kMinorBits = 20;

Value pid(const Line& l) { return unless_0(l.key.pid); }
std::string comm(const Line& l) { return l.key.comm[0] ? text_in(l.key.comm) : "[unknown]"; }
std::uint32_t major(const Line& l) { return l.key.disk >> kMinorBits; }
std::uint32_t minor(const Line& l) { return l.key.disk & ((1U << kMinorBits) - 1); }

}  // namespace

TOOL(biotop) {
  return {
      .name = "biotop",
      .summary = "block I/O by process, disk and operation, as a screen",
      .description =
          "Requests to disks that completed in each interval, by the process that submitted them, "
          "the disk and the operation (D: R read, W write, D discard, F flush), with their bytes "
          "and the average time from issue to completion. With --queued the time in the I/O "
          "scheduler's queue counts too.\n\n"
          "The process is the one that made the request, not the one that its completion "
          "interrupted; data that the kernel writes back later is submitted by a kernel thread. "
          "[unknown] is for requests that were made before tracing started.",
      .overhead = "three hooks per I/O (four with --queued); counted in the kernel",
      .examples = {{"biotop", "redrawn every second; q quits"},
                   {"biotop -C 5 2", "two reports of five seconds, one after another"},
                   {"biotop -s ios -r 5", "the five with the most requests"},
                   {"biotop -p 181", "only what process 181 submits"}},
      .questions = {{"Which process does the most disk I/O now?", "biotop"},
                    {"Which process writes to this disk all the time?", "biotop -d sda -C 10"}},
      .differs = {{Difference::both,
                   "D distinguishes discards and flushes from reads. Peers show all except writes "
                   "as R."},
                  {Difference::libbpf_tools,
                   "Rows are sorted by bytes, then requests. There the default is a sum of "
                   "unlike units."},
                  {Difference::libbpf_tools,
                   "-p applies to the task that submits the I/O. There it is compared once "
                   "more with the task that runs at completion, which excludes most I/O."}},
      .object = skeleton<biotop_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined({shared::screen(),
                         {flag('Q', "queued", "include the time queued in the I/O scheduler",
                               setting(&Opt::queued)),
                          shared::request_disk(), shared::pid(), shared::tid(), shared::uid(),
                          shared::comm(), shared::cgroup(), shared::max_keys()}}),
      .hooks = {{"submission", {{{progs::on_io_start}}, {{progs::on_getrq}}}},
                {"insertion into the queue", {{{progs::on_insert}}}, "queued"},
                {"issue to the device", {{{progs::on_issue}}}},
                {"completion", {{{progs::on_complete}}}}},
      .maps = {{maps::requests, MapSize::block_requests}, {maps::bios, MapSize::block_bios}},
      .report =
          table<biotop_key, biotop_value>(
              maps::users,
              {derived<Line, pid>("pid", "PID", as::pid, "process that submitted them").key_part(),
               derived<Line, comm>("comm", "COMM", as::comm, "its command name"),
               of_key<Line, &biotop_key::flags>("operation", "D", as::wide(as::rwbs, -2),
                                                "operation"),
               derived<Line, major>("major", "MAJ", as::wide(as::number, -3), "disk's major number")
                   .key_part(),
               derived<Line, minor>("minor", "MIN", as::wide(as::number, -3), "disk's minor number")
                   .key_part(),
               of_key<Line, &biotop_key::disk>("disk", "DISK", as::wide(as::disk, -8), "the disk"),
               of_value<Line, &biotop_value::ios>("ios", "I/O", as::wide(as::number, 5),
                                                  "requests that completed"),
               rate_of<Line, &biotop_value::ios>("ios_per_second", "I/O/s", as::wide(as::number, 9),
                                                 "requests per second")
                   .with("json"),
               of_value<Line, &biotop_value::bytes>("bytes", "Kbytes", as::wide(as::kilobytes, 7),
                                                    "their bytes"),
               mean_of<Line, &biotop_value::time_ns, &biotop_value::ios, true>(
                   "average_ns", "AVGms", as::wide(as::milliseconds, 8),
                   "average time of a request"),
               of_value<Line, &biotop_value::time_ns>("time_ns", "TIMEms",
                                                      as::wide(as::milliseconds, 9),
                                                      "time of all requests together")
                   .with("json")},
              "bytes,ios", 20)
              .sorted_also_by({{"all", "bytes"}, {"io", "ios"}, {"time", "time_ns"}})
              .on_screen(),
      .announce = "Tracing block device I/O",
  };
}
