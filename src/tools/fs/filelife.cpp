// filelife: removed files, their lifetime, and the process that removed them.
#include "fs/filelife.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "coretap/files.hpp"
#include "coretap/given_path.hpp"
#include "coretap/removal.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "filelife.skel.h"

using namespace coretap;
using Event = filelife_event;
using Opt = rodata_of<filelife_bpf>;

namespace {

std::string seconds(const Event& e) {
  return fmt::format("{:.2f}", static_cast<double>(e.age_ns) / 1e9);
}
Value path(const Event& e) { return given_path_of(e, e.path); }
bool cut(const Event& e) { return incomplete(e.path); }

/// `old`: system calls that some architectures do not have.
Candidate by_calls(std::vector<ProgramName> old) {
  for (auto program :
       {progs::on_opened, progs::on_unlinkat, progs::on_renameat, progs::on_renameat2,
        progs::on_call_end, progs::on_changed, progs::on_change_kept, progs::on_change_set})
    old.push_back(program);
  return {.programs = std::move(old),
          .caveat =
              "removals from network and FUSE file systems may not be seen, nor files that "
              "io_uring, the kernel itself, and 32-bit programs on a 64-bit kernel create or "
              "remove"};
}

}  // namespace

TOOL(filelife) {
  return {
      .name = "filelife",
      .summary = "files that are removed: how long they existed, and who removed them",
      .description =
          "One line per file that was created by an open() since tracing started and whose last "
          "link was removed (unlink) or replaced by another file (rename). AGE is the time from "
          "creation to removal, and the process is the one that removed it. A file is identified "
          "by its inode: it may have been renamed meanwhile, and if it has several hard links, the "
          "removal of the last one counts. If it is still open, its data remains.\n\n"
          "FILE is the path passed to the call: '-' if its memory could not be read, with '...' if "
          "it is longer than 4095 bytes. For removals by io_uring, the kernel itself (an NFS "
          "server), or 32-bit programs on a 64-bit kernel, FILE is only the name.\n\n"
          "Not seen: files that existed before, files created by mknod, bind or link (O_TMPFILE), "
          "and directories. Of the files that were created and still exist, the last 65536 are "
          "remembered (--max-keys: another number).",
      .overhead =
          "a hook per open and one per removal, and 6 MB of kernel memory for the created files that "
          "exist. If kernel functions cannot be traced: three hooks per removal, one "
          "per change of a file's times, and a small cost on every other system call, because the "
          "kernel then takes its slow path",
      .examples = {{"filelife", "all files that are removed"},
                   {"filelife -F -p 181", "full paths of files that process 181 removes"},
                   {"filelife -m 1000", "only files that existed for at most one second"},
                   {"filelife -- make", "files removed by a command"}},
      .questions = {{"Which programs create files that exist only briefly?", "filelife -m 1000"},
                    {"Which process removes files that were just created?", "filelife -F"}},
      .differs = {{Difference::both,
                   "FILE is the path passed to the removing call, and files that a rename replaces "
                   "count, too. Peers print the last component, show only unlink, and print a line "
                   "for the first hard link that is removed."}},
      .object = skeleton<filelife_bpf>(),
      .options = joined(
          {{shared::full_path<Opt>(), shared::name('n'), shared::duration('d'),
            number('m', "max-age", "MS", "only files that existed for at most MS milliseconds",
                   setting(&Opt::max_age_ns), kMillisecond),
            shared::max_keys()},
           shared::task_filters()}),
      .hooks = {{"files created and removed",
                 {{{progs::on_created, progs::on_removed, progs::on_replaced}},
                  {{progs::on_created_kprobe, progs::on_removed_kprobe, progs::on_replaced_kprobe}},
                  by_calls({progs::on_unlink, progs::on_rename}),
                  by_calls({})},
                 {},
                 {},
                 {},
                 "use filegone, which shows removals without the age of the file"}},
      .maps = {{maps::born, MapSize::objects}},
      .report =
          events<Event>(
              {who<&Event::who>(id::pid, id::comm, id::tid),
               derived<Event, seconds>("age", "AGE(s)", as::wide(as::text, -7),
                                       "since its creation")
                   .in_text(),
               field<&Event::age_ns>("age_ns", "AGE(ms)", as::milliseconds,
                                     "time since its creation")
                   .with("json"),
               named<&Event::call, kRemovalCalls>("call", "CALL", as::text, "system call")
                   .with("json"),
               identity_of_file<Event>(),
               derived<Event, cut>("incomplete", "CUT", as::small, "a part of the path is missing")
                   .with("json"),
               who<&Event::who>(id::uid.with("json"), id::cgroup),
               derived<Event, path>("file", "FILE", as::rest, "path of the file")})
              .spanning("age_ns")
              .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .announce = "Tracing the lives of files",
  };
}
