// iosched: waiting time of block requests in the I/O scheduler, as histograms by scheduler.
#include "block/iosched.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "iosched.skel.h"

using namespace coretap;
using Key = iosched_key;

namespace {

std::string scheduler(const Key& k) { return k.scheduler[0] ? text_in(k.scheduler) : "none"; }

}  // namespace

TOOL(iosched) {
  return {
      .name = "iosched",
      .summary = "time that block requests wait in the I/O scheduler, as histograms",
      .description =
          "Time of each block request from its insertion into the I/O scheduler's queue to its "
          "issue to the device, as a log2 histogram for each scheduler: mq-deadline, kyber, bfq, "
          "or none, where requests may wait in a plain queue.\n\n"
          "Requests that are issued immediately, without being queued, are not counted: flushes, "
          "and with none most others. A request that the device refuses for the moment and that is "
          "queued again is counted for each time in the queue; one that is merged into another is "
          "not counted.\n\n"
          "Task filters apply to the submitter of the I/O. Data that the kernel writes back later "
          "belongs to no process; with --cgroup it counts where the io controller charges it.",
      .overhead =
          "two hooks per I/O, three with a task filter; counted in the kernel, no output per event",
      .examples = {{"iosched", "one histogram for each scheduler, until Ctrl-C"},
                   {"iosched -D 1 10", "per disk, ten reports of one second"},
                   {"iosched -mT -d sda 5", "of sda in milliseconds, every five seconds"}},
      .questions = {{"How long does I/O wait in the I/O scheduler?", "iosched -D 10 1"}},
      .object = skeleton<iosched_bpf>(),
      .positionals = shared::interval_count(),
      .options = {flag('D', "disks", "one histogram per disk",
                       setting(&rodata_of<iosched_bpf>::by_disk)),
                  shared::request_disk(), shared::milliseconds(), shared::timestamp(),
                  shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup(),
                  shared::max_keys()},
      .hooks = {{"submission", {{{progs::on_io_start}}, {{progs::on_getrq}}}, "task-filter|by"},
                {"insertion into the queue", {{{progs::on_insert}}}},
                {"issue to the device", {{{progs::on_issue}}}}},
      .maps = {{maps::requests, MapSize::block_requests},
               {maps::bios, MapSize::block_bios},
               {maps::request_owners, MapSize::block_requests, "by"}},
      .report = histogram<Key>(
          maps::waits, "queue time",
          {derived<Key, scheduler>("scheduler", "scheduler", as::text, "the I/O scheduler")
               .bounded(),
           field<&Key::disk>("disk", "disk", as::disk, "the disk").with("disks")}),
      .announce = "Tracing waits in the I/O scheduler",
  };
}
