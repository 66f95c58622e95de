// fsslower: slow file system operations.
#include "fs/fsslower.h"

#include "coretap/config.hpp"
#include "coretap/file_systems.hpp"
#include "coretap/files.hpp"
#include "coretap/identity.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "fsslower.skel.h"

using namespace coretap;
using Event = fsslower_event;
using Opt = rodata_of<fsslower_bpf>;

namespace {

constexpr std::string_view kLetters[] = {"R", "W", "O", "F", "G"};

bool moves(const Event& e) { return e.operation <= FS_WRITE; }
Value bytes(const Event& e) {
  return value_if(moves(e), static_cast<std::uint64_t>(e.result > 0 ? e.result : 0));
}
Value offset(const Event& e) { return value_if(moves(e), e.offset); }

std::vector<Positional> threshold() {
  auto least = shared::threshold("MIN_MS", kMillisecond,
                                 "only operations that take at least MIN_MS milliseconds; 0: all",
                                 setting(&Opt::min_ns), "10");
  least.option = "min";
  return {least};
}

}  // namespace

TOOL(fsslower) {
  static const std::string kDescription =
      "One line per operation of a file system that takes at least MIN_MS milliseconds, when it "
      "ends. T is R for a read, W for a write, O for an open, F for an fsync, G for a getattr. "
      "BYTES is what a read or write moved, OFF_KB is where in the file it started. FILENAME is "
      "the path as the process sees it. Without --type, a column shows the type of the file "
      "system.\n\n" +
      std::string(kFsCalls);
  return {
      .name = "fsslower",
      .summary = "slow operations of file systems, with their files",
      .description = kDescription,
      .overhead =
          "two hooks on every system call and io_uring request, which add some tens of nanoseconds "
          "to calls that are not such operations; if functions of the file system are traced, only "
          "its operations pay",
      .examples = {{"fsslower", "what took 10 ms or more, on all file systems"},
                   {"fsslower -t ext4 1", "what took 1 ms or more on ext4"},
                   {"fsslower -t nfs -p 181", "of process 181 on NFS"},
                   {"fsslower -t xfs -c -d 1", "for one second, as comma-separated values"},
                   {"fsslower 0 --directory /var -- make",
                    "all operations of a command below /var"}},
      .questions = {{"Which operations of a file system are slow?", "fsslower -t ext4"},
                    {"Does a program wait for fsync or open?", "fsslower 1 -p 1234"}},
      .other_names = {{"bcachefsslower", "--type=bcachefs"},
                      {"btrfsslower", "--type=btrfs"},
                      {"ext4slower", "--type=ext4"},
                      {"f2fsslower", "--type=f2fs"},
                      {"fuseslower", "--type=fuse"},
                      {"nfsslower", "--type=nfs"},
                      {"xfsslower", "--type=xfs"},
                      {"zfsslower", "--type=zfs"}},
      .differs =
          {{Difference::both,
            "Every type of file system can be named, and without --type all are shown. If "
            "functions cannot be traced, and for types other than ext4, xfs, btrfs and f2fs, the "
            "time is that of the system call. FILENAME is the path instead of its last part. BYTES "
            "and OFF_KB are empty except for reads and writes."},
           {Difference::bcc,
            "-j is --csv here, and an fsync has the letter F, as in libbpf-tools. In "
            "bcc it is S."},
           {Difference::libbpf_tools,
            "--csv has the keys of --json. There it has different columns."}},
      .object = skeleton<fsslower_bpf>(),
      .positionals = threshold(),
      .options = {shared::fs_type(),
                  number('m', "min", "MS",
                         "only operations that take at least this many milliseconds",
                         setting(&Opt::min_ns), kMillisecond),
                  shared::csv('c'), shared::duration('d'), shared::directory(0), shared::pid(),
                  shared::tid(0), shared::uid(), shared::comm(), shared::cgroup(0)},
      .other_meanings =
          {{'c', "csv",
            "columns are the keys of --json, with times in nanoseconds; those of bcc and "
            "libbpf-tools are others (--output-format csv: without this note)"}},
      .elsewhere = {{'j', "", "use -c or --csv"}, {'s', "", "use -c or --csv"}},
      .hooks = fs_call_hooks(),
      .report = events<Event>(
                    {who<&Event::who>(id::comm, id::pid, id::tid),
                     derived<Event, [](const Event& e) { return fs_type_name(e.type); }>(
                         "fs_type", "FS", as::wide(as::text, -8), "type of the file system")
                         .bounded()
                         .with("!type"),
                     named<&Event::operation, kLetters>("operation", "T", as::wide(as::text, -1),
                                                        "R: read, W: write, O: open, F: fsync, "
                                                        "G: getattr"),
                     derived<Event, bytes>("bytes", "BYTES", as::wide(as::number, 7),
                                           "bytes moved; empty: not a read or write")
                         .or_null(),
                     derived<Event, offset>("offset_bytes", "OFF_KB", as::wide(as::kilobytes, 8),
                                            "where in the file it started")
                         .or_null(),
                     field<&Event::latency_ns>("latency_ns", "LAT(ms)", as::milliseconds,
                                               "time of the call"),
                     failure<&Event::result>("what it failed with").with("json"),
                     who<&Event::who>(id::uid.with("json"), id::cgroup), identity_of_file<Event>(),
                     derived<Event, file_of_event<Event>>("file", "FILENAME", as::rest,
                                                          "path of the file")})
                    .timed({{TimeColumn::wall, "TIME", 12, ""}})
                    .only(event_below_directory<Event>),
      .announce = "Tracing slow operations of file systems",
      .look_up = look_up_fs_type<Opt>,
  };
}
