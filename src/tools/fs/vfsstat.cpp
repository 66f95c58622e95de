// vfsstat: operations of the virtual file system.
#include "fs/vfsstat.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "vfsstat.skel.h"

using namespace coretap;
using Sums = vfsstat_sums;

namespace {

template <auto Member>
std::uint64_t of(const Sums& s) {
  return s.*Member;
}

/// The rate in text, the count in other formats.
template <auto Member>
std::vector<Field> operation(std::string_view key, std::string_view title, std::string_view counted,
                             std::string_view doc) {
  return {rate<Sums, of<Member>>(key, title, as::wide(as::number, 8), doc).in_text(),
          field<Member>(key, counted, as::number, doc).with("json")};
}

}  // namespace

TOOL(vfsstat) {
  return {
      .name = "vfsstat",
      .summary = "operations of the virtual file system per second",
      .description =
          "Each interval, how many files were read, written, flushed (fsync, fdatasync), opened, "
          "created by an open, and unlinked, and how many directories were created and removed, "
          "per second. JSON and CSV have the counts. Reads and writes include those of any "
          "descriptor: pipes, sockets and terminals too.\n\n"
          "Only system calls that succeed count. Not seen: operations by io_uring, AIO and the "
          "kernel itself, calls of 32-bit programs on a 64-bit kernel, and flushes by O_SYNC, "
          "msync and sync. A rate is based on the time that passed, not on the requested interval.",
      .overhead =
          "a hook per operation, counted in the kernel, per CPU; a small cost on every other "
          "system call, because the kernel then takes its slow path",
      .examples = {{"vfsstat", "a line per second"},
                   {"vfsstat 5 12", "a minute, every five seconds"},
                   {"vfsstat -p 181", "of process 181"}},
      .questions = {{"How much does a program use files?", "vfsstat -p 1234"},
                    {"Are files constantly opened and created?", "vfsstat"}},
      .differs = {{Difference::both,
                   "CREATE/s counts files that an open creates. Peers count calls of "
                   "vfs_create, which such an open does not make. READ/s and WRITE/s include "
                   "readv and writev, and FSYNC/s includes fdatasync; UNLINK/s, MKDIR/s and "
                   "RMDIR/s are always shown."}},
      .object = skeleton<vfsstat_bpf>(),
      .positionals = shared::interval_count(1),
      .options = {shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup()},
      .hooks = {{"operations",
                 {{{progs::read_call, progs::readv_call, progs::write_call, progs::writev_call,
                    progs::fsync_call, progs::open_call, progs::mkdir_call, progs::unlinkat_begins,
                    progs::remove_call}}}}},
      .report =
          sums<Sums>(
              maps::operations_cpus,
              {operation<&Sums::reads>("reads", "READ/s", "READS", "reads"),
               operation<&Sums::writes>("writes", "WRITE/s", "WRITES", "writes"),
               operation<&Sums::fsyncs>("fsyncs", "FSYNC/s", "FSYNCS", "flushes of a file"),
               operation<&Sums::opens>("opens", "OPEN/s", "OPENS", "files opened"),
               operation<&Sums::creates>("creates", "CREATE/s", "CREATES",
                                         "files created by an open"),
               operation<&Sums::unlinks>("unlinks", "UNLINK/s", "UNLINKS", "file names removed"),
               operation<&Sums::mkdirs>("mkdirs", "MKDIR/s", "MKDIRS", "directories created"),
               operation<&Sums::rmdirs>("rmdirs", "RMDIR/s", "RMDIRS", "directories removed")})
              .counted_by(7)  // created files are also opens
              .always_timed(),
      .announce = "Tracing operations of the virtual file system",
  };
}
