// mmapsnoop: files that are mapped into memory.
#include "memory/mmapsnoop.h"

#include <sys/mman.h>

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "mmapsnoop.skel.h"

using namespace coretap;
using Event = mmapsnoop_event;
using Opt = rodata_of<mmapsnoop_bpf>;

namespace {

using Letters = std::pair<std::uint64_t, char>;

std::string letters(std::uint64_t flags, std::initializer_list<Letters> all) {
  std::string text;
  for (auto& [flag, letter] : all) text += flags & flag ? letter : '-';
  return text;
}
std::string protection(const Event& e) {
  return letters(e.prot, {{PROT_READ, 'R'}, {PROT_WRITE, 'W'}, {PROT_EXEC, 'E'}});
}
// MAP_SHARED_VALIDATE contains the bits of both.
std::string kind(const Event& e) {
  auto flags = e.flags & MAP_SHARED ? e.flags & ~std::uint64_t{MAP_PRIVATE} : e.flags;
  return letters(flags, {{MAP_SHARED, 'S'},
                         {MAP_PRIVATE, 'P'},
                         {MAP_FIXED | MAP_FIXED_NOREPLACE, 'F'},
                         {MAP_ANONYMOUS, 'A'}});
}

bool failed(const Event& e) { return e.ret < 0 && e.ret >= -4095; }
Value address(const Event& e) { return value_if(!failed(e), static_cast<std::uint64_t>(e.ret)); }
Value offset(const Event& e) { return value_if(!(e.flags & MAP_ANONYMOUS), e.offset); }
Value inode(const Event& e) { return value_if(e.mode, e.file.inode); }
std::uint32_t device(const Event& e) { return e.file.dev; }
Value file(const Event& e) {
  if (!e.mode) return {};
  return file_name(e.mode, e.file.inode, file_path(text_of(e, e.path), e.path_kind));
}

}  // namespace

TOOL(mmapsnoop) {
  return {
      .name = "mmapsnoop",
      .summary = "files that are mapped into memory (mmap), with offset and size",
      .description =
          "One line per call to mmap for a file, when it returns. PROT is what the mapping allows: "
          "R read, W write, E execute. MAP is S shared or P private, F at a fixed address, A "
          "anonymous. OFFS(KB) is the offset in the file, FILE its path as the process sees it.\n\n"
          "--all adds anonymous memory; --failed shows only calls that failed, with their error. "
          "Without --all, calls for anonymous memory count as excluded, even with --failed.\n\n"
          "Not seen: mappings that the kernel itself makes when a program starts (the program and "
          "its loader), System V shared memory (shmsnoop), and 32-bit programs on a 64-bit kernel.",
      .overhead =
          "two hooks per call to mmap; a small cost on every other system call, because the kernel "
          "then takes its slow path",
      .examples = {{"mmapsnoop", "files that are mapped"},
                   {"mmapsnoop -T -p 181", "process 181, with the time of day"},
                   {"mmapsnoop -x -a", "calls that failed, for anonymous memory too"},
                   {"mmapsnoop -- ls", "libraries that a command loads"}},
      .questions = {{"Which files does a program map into its memory?", "mmapsnoop -p 181"},
                    {"Which libraries does a command load?", "mmapsnoop -- ls"},
                    {"Which calls to mmap fail, and why?", "mmapsnoop -x -a"}},
      .object = skeleton<mmapsnoop_bpf>(),
      .options = joined({{flag('T', "time", "print the time of day"),
                          flag('a', "all", "also anonymous memory", setting(&Opt::anonymous_too)),
                          flag('x', "failed", "only calls that failed", setting(&Opt::failed_only)),
                          shared::duration('d')},
                         shared::task_filters()}),
      .hooks = {{"calls of mmap", {{{progs::on_enter}}}}, {"results", {{{progs::on_exit}}}}},
      .report =
          events<Event>(
              {who<&Event::who>(id::pid.columns(-6), id::comm, id::tid),
               derived<Event, protection>("protection", "PROT", as::wide(as::text, -4),
                                          "R read, W write, E execute"),
               derived<Event, kind>("kind", "MAP", as::wide(as::text, -5),
                                    "S shared, P private, F fixed address, A anonymous")
                   .bounded(),
               failure<&Event::ret>("why it failed; null: it succeeded").with("failed"),
               derived<Event, offset>("offset_bytes", "OFFS(KB)", as::wide(as::kilobytes, -8),
                                      "offset in the file")
                   .or_null(),
               field<&Event::bytes>("size_bytes", "SIZE(KB)", as::wide(as::kilobytes, -8),
                                    "size of the mapping"),
               with("json",
                    {derived<Event, address>("address", "ADDRESS", as::number,
                                             "where it is mapped; null: it failed")
                         .or_null(),
                     field<&Event::flags>("map_flags", "FLAGS", as::number, "flags of mmap(2)"),
                     derived<Event, device>("device", "DEV", as::disk,
                                            "disk or device number of the file"),
                     derived<Event, inode>("inode", "INODE", as::number, "inode number"),
                     who<&Event::who>(id::uid)}),
               who<&Event::who>(id::cgroup),
               derived<Event, file>("file", "FILE", as::rest, "path of the file; null: no file")})
              .timed({{TimeColumn::wall, "TIME", 12, "time"}})
              .high_rate(),
      .announce = "Tracing files mapped into memory",
  };
}
