// biolatpcts: percentiles of block I/O latency, by disk and operation.
#include "block/biolatpcts.h"

#include <fmt/format.h>

#include "biolatpcts.skel.h"
#include "coretap/config.hpp"
#include "coretap/kernel.hpp"
#include "coretap/percentiles.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Opt = rodata_of<biolatpcts_bpf>;
using Key = biolatpcts_key;

namespace {

/// Refuses numbers with another meaning in similar tools: 0 ends at once, -1 never reports.
Option interval() {
  auto option = shared::interval();
  option.apply = [usual = option.apply](Config& c, std::string_view text) -> Result<void> {
    if (text == "0" || text == "-1")
      return usage(fmt::format("--interval: {} is not a valid time between reports", text),
                   text == "0" ? "--explain shows whether it would run here"
                               : "--interval 1e9 reports only at the end");
    return usual(c, text);
  };
  return option;
}

Result<void> look_up(Config& c) {
  if (c.text("which") != "from-rq-alloc" || kernel_has_field("request", "alloc_time_ns")) return {};
  return Error{
      "--which from-rq-alloc: this kernel does not record when a request's allocation "
      "starts",
      "it is built without CONFIG_BLK_RQ_ALLOC_TIME", "--which after-rq-alloc", kUnsupported};
}

}  // namespace

TOOL(biolatpcts) {
  return {
      .name = "biolatpcts",
      .summary = "percentiles of block I/O latency, by disk and operation",
      .description =
          "Percentiles of the time until each block request completes, by disk and operation: p99 "
          "is the time that 99 % of the requests do not exceed. By default, the time starts at the "
          "issue to the device (on-device). With --which after-rq-alloc, it starts when the "
          "request was allocated and includes the wait in the I/O scheduler's queue; with "
          "from-rq-alloc, it also includes the wait for a request, which the kernel records only "
          "for disks with the cgroup controller iocost: requests of other disks count as "
          "unmatched.\n\n"
          "A request that completes in parts counts once, when the last part is done. Times are "
          "counted in the kernel, in 64 buckets per power of two.\n\n"
          "Task filters apply to the submitter of the I/O. Data that the kernel writes back later "
          "belongs to no process; with --cgroup it counts where the io controller charges it.",
      .overhead =
          "two hooks per I/O, three with a task filter; counted in the kernel, no output per event",
      .examples = {{"biolatpcts", "all disks, every 3 seconds"},
                   {"biolatpcts --pcts 50,99,99.9 -d sda -i 1",
                    "one disk, each second, three percentiles"},
                   {"biolatpcts --overall --duration 60", "of one minute, cumulative"},
                   {"biolatpcts -j -d 8:0", "as JSON, for the disk with these numbers"}},
      .questions = {{"How slow are the slowest 1 % of the requests?",
                     "biolatpcts --pcts 50,99,100"},
                    {"Does a disk keep its promised latency?", "biolatpcts --overall -d sda"}},
      .differs =
          {{Difference::bcc,
            "Percentiles are at most 0.8 % off, without an upper limit, and all disks are shown "
            "unless one is named. There, buckets of 10 us, 1 ms and 100 ms are used."},
           {Difference::bcc,
            "Rows start with the operation and the percentiles, as there; COUNT and DISK follow. "
            "An operation without requests has no row."},
           {Difference::bcc, "-p is --pcts, as there. Processes are selected by --pid."},
           {Difference::bcc,
            "-j prints an object for each disk and operation, with nanoseconds. There it is one "
            "for each interval, with seconds, such as {\"read\": {\"50\": 0.0001}, ...}. From our "
            "lines, jq -c 'select(.type == \"percentiles\") | {(.operation | ascii_downcase): "
            "(.percentiles | map({(.percent | tostring): (.value_ns / 1e9)}) | add)}' makes such "
            "objects."},
           {Difference::bcc,
            "On-device times are measured. There, the kernel's own timestamps are used, which most "
            "disks do not have."}},
      .object = skeleton<biolatpcts_bpf>(),
      .positionals = {{.metavar = "DEV",
                       .doc = "only this disk: its name, path or MAJOR:MINOR",
                       .apply = shared::request_disk().apply,
                       .complete = Complete::disk,
                       .option = "disk"},
                      shared::interval_count(3).front()},
      .options =
          {interval(),
           choice(
               'w', "which", "WHICH",
               "measure from on-device: the issue to the device (default); after-rq-alloc: the end of "
               "the request's allocation; from-rq-alloc: its start",
               {{"on-device", BIOLATPCTS_ISSUE},
                {"after-rq-alloc", BIOLATPCTS_ALLOCATED},
                {"from-rq-alloc", BIOLATPCTS_WANTED}},
               [](Config& c, std::uint64_t since) { c.set(setting(&Opt::measured_since), since); }),
           shared::percentiles("which percentiles, 0 to 100 (default: "
                               "1,5,10,16,25,50,75,84,90,95,99,100)")
               .also('p'),
           shared::overall(), shared::request_disk(), shared::timestamp(), shared::pid(0),
           shared::tid(), shared::uid(), shared::comm(), shared::cgroup(), shared::max_keys()},
      .other_meanings =
          {{'j', "json",
            "an object for each disk and operation, in nanoseconds; bcc's has one for "
            "each interval, in seconds (--output-format json: without this note)"}},
      .hooks = {{"submission", {{{progs::on_io_start}}, {{progs::on_getrq}}}, "task-filter"},
                {"issue to the device", {{{progs::on_issue}}}},
                {"completion", {{{progs::on_complete}}}}},
      .maps = {{maps::requests, MapSize::block_requests}, {maps::bios, MapSize::block_bios}},
      .report = percentiles<Key, &Key::bucket>(
                    maps::latencies, "time",
                    {field<&Key::disk>("disk", "DISK", as::disk, "the disk"),
                     field<&Key::operation>("operation", "OPERATION", as::wide(as::block_flags, -9),
                                            "operation")},
                    {1, 5, 10, 16, 25, 50, 75, 84, 90, 95, 99, 100})
                    .columns({{"operation"}}),
      .announce = "Tracing block device I/O",
      .look_up = look_up,
  };
}
