// bioerr: failed block I/O, with disk, sector, error and process.
#include "block/bioerr.h"

#include "bioerr.skel.h"
#include "coretap/disks.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Event = bioerr_event;

TOOL(bioerr) {
  return {
      .name = "bioerr",
      .summary = "block I/O that failed, with disk, sector, error and process",
      .description =
          "One line per disk request that failed, when the kernel gives up on it: the operation "
          "and its flags (T: R read, W write, D discard, F flush; then F forced unit access, A "
          "read-ahead, S synchronous, M metadata), where and how much of it failed, the error, and "
          "the process that submitted it. A request that a driver retries successfully is not an "
          "error.\n\n"
          "Devices without requests, such as device mapper and md, have separate lines for what "
          "fails there, without a process: the line of the underlying disk names it.\n\n"
          "Not shown without --all: read-ahead, operations that the device does not support, "
          "requests whose errors the driver asked the kernel not to log, and commands that "
          "programs send directly to the device.\n\n"
          "The process is the one that made the request. Data that the kernel writes back later is "
          "submitted by a kernel thread. Columns of an I/O whose submission was not seen show a "
          "dash.\n\n"
          "With --kernel-stack, each line is followed by the kernel stack in which the process "
          "shown made the request: the path from the system call, or from the kernel thread, "
          "through the file system. It is not the stack in which the error was detected. Lines "
          "without a process have none.",
      .overhead =
          "one hook per I/O to identify the processes, none with --no-process; one more before "
          "Linux 5.18 and with --all; with --kernel-stack, a kernel stack walk for each I/O, even "
          "those that succeed",
      .examples = {{"bioerr", "all errors until Ctrl-C"},
                   {"bioerr -d sda --no-process", "of one disk, at no cost for I/O that succeeds"},
                   {"bioerr -K", "with the kernel code that submitted what failed"},
                   {"bioerr -a -- fstrim /", "all failed I/O of a command"}},
      .questions = {{"Does a disk report errors?", "bioerr"},
                    {"Which process gets I/O errors, and where on the disk?", "bioerr -d sda"},
                    {"Which kernel code submitted I/O that failed?", "bioerr -K"}},
      .object = skeleton<bioerr_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined(
          {{flag('a', "all",
                 "also read-ahead, unsupported operations, and what the kernel does not log",
                 setting(&rodata_of<bioerr_bpf>::all)),
            shared::request_disk(), shared::name('n')},
           {flag(0, "no-process", "do not identify the processes")},
           belonging_to("!no-process", joined({{shared::kernel_stack()}, shared::task_filters()})),
           belonging_to("kernel-stack", {shared::stack_depth(), shared::stack_storage()})}),
      .hooks = {{"submission",
                 {{{progs::on_io_start}}, {{progs::on_getrq, progs::on_issue}}},
                 "!no-process"},
                {"errors of requests", {{{progs::on_error}}, {{progs::on_complete}}}, "!all"},
                {"ends of requests", {{{progs::on_complete}}}, "all"},
                {"errors of devices without requests", {{{progs::on_bio}}}}},
      .maps = {{maps::requests, MapSize::block_requests, "!no-process"},
               {maps::bios, MapSize::block_bios, "!no-process"},
               {maps::stacks, MapSize::stacks, "kernel-stack"}},
      .report =
          events<Event>(
              {field<&Event::disk>("disk", "DISK", as::disk, "the disk"),
               field<&Event::flags>("rwbs", "T", as::rwbs, "operation and flags, in letters"),
               derived<Event, [](const Event& e) { return value_if(e.bytes, e.sector); }>(
                   "sector", "SECTOR", as::number, "first 512-byte sector of what failed"),
               field<&Event::bytes>("bytes", "BYTES", as::wide(as::number, 8), "its length"),
               derived<Event, [](const Event& e) { return block_error(e.status); }>(
                   "error", "ERROR", as::wide(as::error, -11), "what it failed with"),
               owner<&Event::owner>(id::comm, id::pid, id::tid, id::uid.with("json"), id::cgroup),
               field<&Event::flags>("flags", "FLAGS", as::block_flags, "operation and flags")
                   .unbounded()
                   .with("json")},
              "kernel-stack")
              .timed({{TimeColumn::wall, "TIME", 12, {}}}),
      .announce = "Tracing block I/O errors",
  };
}
