// fsrwstat: reads and writes by type of file system.
#include "fs/fsrwstat.h"

#include "coretap/file_counts.hpp"
#include "coretap/ring_io.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "fsrwstat.skel.h"

using namespace coretap;
using Key = fsrwstat_key;
using Counts = file_counts;
using Line = Row<Key, Counts>;

namespace {

Value type(const Line& l, const FieldContext& context) {
  auto* name = context.row_text(l.key);
  return name ? Value(*name) : Value();
}
std::uint64_t read_kb(const Line& l) { return l.value.read_bytes / 1024; }
std::uint64_t write_kb(const Line& l) { return l.value.write_bytes / 1024; }

}  // namespace

TOOL(fsrwstat) {
  static const std::string kDescription =
      "System calls that read or write any file descriptor, per second of each interval, by the "
      "type of the file system that the file is on, as in /proc/filesystems: read, write, their p "
      "and v forms, sendfile, splice, copy_file_range. Pipes are on pipefs, sockets on sockfs, "
      "eventfd and the like on anon_inodefs. JSON and CSV have the counts and bytes.\n\n"
      "Calls that fail do not count. A rate is based on the time that passed, not on the requested "
      "interval.\n\n" +
      std::string(kFileIoSeen);
  return {
      .name = "fsrwstat",
      .summary = "reads and writes per second, by type of file system",
      .description = kDescription,
      .overhead =
          "a hook on every system call and io_uring request, which adds some tens of nanoseconds "
          "to calls that do not read or write files",
      .examples = {{"fsrwstat", "every second"},
                   {"fsrwstat 5 12", "a minute, every five seconds"},
                   {"fsrwstat -s writes -p 181", "of process 181, the most writes first"}},
      .questions = {{"Which file systems are read and written?", "fsrwstat"}},
      .object = skeleton<fsrwstat_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined(
          {{shared::top('r'), shared::sort()}, shared::task_filters(), {shared::max_keys()}}),
      .hooks = {{"system calls", {{.programs = {progs::on_exit}, .caveat = kFileIoNotSeen}}},
                ring_io_hook()},
      .report =
          table<Key, Counts>(
              maps::types,
              {derived<Line, type>("fs_type", "FS", as::text, "type of the file system").bounded(),
               rate_of<Line, &Counts::reads>("reads", "READ/s", as::number, "reads").in_text(),
               rate_of<Line, &Counts::writes>("writes", "WRITE/s", as::number, "writes").in_text(),
               rate<Line, read_kb>("read_bytes", "R_KB/s", as::number, "bytes read").in_text(),
               rate<Line, write_kb>("write_bytes", "W_KB/s", as::number, "bytes written").in_text(),
               with("json", {counts_of_files<Line>()})},
              "bytes,reads,writes")
              .counted_by(2)
              .sorted_also_by(words_of_peers_for_counts()),
      .announce = "Tracing reads and writes by type of file system",
  };
}
