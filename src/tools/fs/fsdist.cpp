// fsdist: latency of file system operations, as histograms.
#include "fs/fsdist.h"

#include "coretap/file_systems.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "fsdist.skel.h"

using namespace coretap;
using Key = fsdist_key;

namespace {

std::string type(const Key& key) { return fs_type_name(key.type); }

}  // namespace

TOOL(fsdist) {
  static const std::string kDescription =
      "A log2 histogram of times for each operation of a file system, in microseconds. Without "
      "--type, each type of file system has its own histograms.\n\n" +
      std::string(kFsCalls);
  return {
      .name = "fsdist",
      .summary = "latency of file system operations, as histograms",
      .description = kDescription,
      .overhead =
          "counted in the kernel; two hooks on every system call and io_uring request, which add "
          "some tens of nanoseconds to calls that are not such operations; if functions of the "
          "file system are traced, only its operations pay",
      .examples = {{"fsdist", "all file systems, until Ctrl-C"},
                   {"fsdist -t ext4", "only ext4"},
                   {"fsdist -t xfs 1 10", "a report per second, ten of them"},
                   {"fsdist -m -t nfs -p 181", "in milliseconds, of process 181"},
                   {"fsdist -- git status", "what this command does"}},
      .questions = {{"How long do reads, writes and fsyncs of a file system take?",
                     "fsdist -t ext4 10 1"},
                    {"Which file systems does a program use, and how fast are they?",
                     "fsdist -p 1234"}},
      .other_names = {{"bcachefsdist", "--type=bcachefs"},
                      {"btrfsdist", "--type=btrfs"},
                      {"ext4dist", "--type=ext4"},
                      {"f2fsdist", "--type=f2fs"},
                      {"fusedist", "--type=fuse"},
                      {"nfsdist", "--type=nfs"},
                      {"xfsdist", "--type=xfs"},
                      {"zfsdist", "--type=zfs"}},
      .differs =
          {{Difference::both,
            "Every type of file system can be named, and without --type all are shown. If "
            "functions cannot be traced, and for types other than ext4, xfs, btrfs and f2fs, times "
            "are those of system calls. Peers time only functions. The flush within a write with "
            "O_SYNC is part of the write here. There it replaces the write."},
           {Difference::bcc,
            "-T prints the time of each report. ext4dist and similar tools print it without an "
            "option, and omit it with -T."}},
      .object = skeleton<fsdist_bpf>(),
      .positionals = shared::interval_count(),
      .options = {shared::fs_type(), shared::milliseconds(), shared::timestamp(),
                  flag('e', "extension", "print average, total and count below each histogram"),
                  shared::pid(), shared::tid(0), shared::uid(), shared::comm(), shared::cgroup(),
                  shared::max_keys()},
      .other_meanings = {{'T', "",
                          "prints the time of each report, as in libbpf-tools; bcc's ext4dist and "
                          "others omit it with -T (--timestamp: without this note)"}},
      .elsewhere = {{0, "notimestamp", "reports have no time without --timestamp"}},
      .hooks = fs_call_hooks(),
      .report = histogram<Key>(
          maps::latencies, "latency",
          {derived<Key, type>("fs_type", "type", as::text, "type of the file system")
               .bounded()
               .with("!type"),
           named<&Key::operation, kFsOperations>(
               "operation", "operation", as::text,
               "read, write, open, fsync (fdatasync too) or getattr (fstat, statx)")},
          "extension"),
      .announce = "Tracing latency of file system operations",
      .look_up = look_up_fs_type<rodata_of<fsdist_bpf>>,
  };
}
