// opensnoop: files that are opened, with the process and the result.
#include "syscall/opensnoop.h"

#include <fcntl.h>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/flags.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "opensnoop.skel.h"

using namespace coretap;
using Event = opensnoop_event;
using Rodata = rodata_of<opensnoop_bpf>;

namespace {

Result<void> want_flag(Config& c, std::string_view text) {
  for (auto& flag : open_flag_words()) {
    if (flag.name != text) continue;
    auto list = setting(&Rodata::wanted_flags);
    std::size_t at = list.offset;
    for (auto& edit : c.edits())
      if (edit.target.offset == at) at += 8;
    if (at >= list.offset + list.size) return usage("--flag-filter: too many flags", "name fewer");
    c.set({at, 8}, flag.mask() << 32 | flag.value);
    return {};
  }
  return usage(fmt::format("--flag-filter: '{}' is not a flag of open(2)", text),
               "name one as open(2) does, such as O_WRONLY or O_CREAT");
}

Option flag_filter() {
  auto option = value('f', "flag-filter", "O_FLAG",
                      "only with this flag, as open(2) names it; any of several", want_flag);
  return one_of(std::move(option).adding_up(), [] {
    std::vector<Completion> all;
    for (auto& flag : open_flag_words()) all.push_back({std::string(flag.name)});
    return all;
  });
}

std::int64_t descriptor(const Event& e) { return e.ret < 0 ? -1 : e.ret; }
std::int64_t errno_or_0(const Event& e) { return e.ret < 0 ? -e.ret : 0; }

Value argument(const Event& e) {
  if (!(e.what & OPENSNOOP_GIVEN)) return {};
  return std::string(text_of(e, e.path)) + (e.what & OPENSNOOP_CUT ? "..." : "");
}

std::string walked(const Event& e) {
  return path_of(text_of(e, e.walked), e.what & OPENSNOOP_WALK_CUT);
}

Value path(const Event& e) {
  if (e.what & OPENSNOOP_FILE) return walked(e);
  auto given = argument(e);
  auto* text = std::get_if<std::string>(&given);
  if (!text || !(e.what & OPENSNOOP_BASE)) return given;
  auto base = walked(e);
  if (text->empty()) return base;
  return (base == "/" ? "" : base) + "/" + *text;
}

bool incomplete(const Event& e) { return e.what & (OPENSNOOP_CUT | OPENSNOOP_WALK_CUT); }

constexpr std::string_view kCalls[] = {"open", "creat", "openat", "openat2", "open_by_handle_at"};
static_assert(std::size(kCalls) == OPENSNOOP_CALLS);

Value flags(const Event& e) { return value_if(!(e.what & OPENSNOOP_FLAGS_UNKNOWN), e.flags); }

Value mode(const Event& e) {
  return value_if(open_reads_mode(e.flags) && !(e.what & OPENSNOOP_FLAGS_UNKNOWN), e.mode);
}

Value directory(const Event& e) {
  return value_if(e.call >= OPENSNOOP_OPENAT && e.dfd != AT_FDCWD, e.dfd);
}

}  // namespace

TOOL(opensnoop) {
  return {
      .name = "opensnoop",
      .summary = "files that are opened, by whom, and with what result",
      .description =
          "One line per call to open, creat, openat, openat2 and open_by_handle_at when it "
          "returns. FD is the new descriptor, or -1 with the error in ERR. PATH is what the "
          "program passed: '-' if its memory could not be read, with '...' if it is longer than "
          "4095 bytes.\n\n"
          "With --full-path an opened file is shown with its real path as the process sees it, "
          "symbolic links resolved and mounts crossed; a path that failed is appended to the "
          "directory that it is relative to. Beyond 96 components the beginning is '...'. "
          "open_by_handle_at takes no path: the file's path is always shown.\n\n"
          "Not seen: files opened through io_uring, by 32-bit programs on a 64-bit kernel, and by "
          "the kernel itself (programs that are run, modules).",
      .overhead =
          "two hooks per open, well below a microsecond; a small cost on every other system call, "
          "because the kernel then takes its slow path",
      .examples = {{"opensnoop", "all files opened"},
                   {"opensnoop -x", "only failures: missing files, lack of permission"},
                   {"opensnoop -F -p 181", "full paths, of one process"},
                   {"opensnoop -T -U -e -n nginx", "with times, users, flags and modes, by name"},
                   {"opensnoop -f O_WRONLY -f O_RDWR", "files opened for writing"}},
      .questions = {{"Which process opens that file?", "opensnoop -F"},
                    {"Which configuration files does a program read?", "opensnoop -- nginx -t"},
                    {"Which file is missing, or may not be opened?", "opensnoop -x"},
                    {"Which processes open files for writing?",
                     "opensnoop -F -f O_WRONLY -f O_RDWR"}},
      .differs =
          {{Difference::both,
            "Calls to creat and open_by_handle_at are traced, too, and paths are kept up to 4095 "
            "bytes. Peers cut them at 255. ERR is the name of the error, theirs its number."},
           {Difference::libbpf_tools,
            "-F shows the path of the file that was opened. There, it is the working directory "
            "joined with what the program passed."}},
      .object = skeleton<opensnoop_bpf>(),
      .options =
          joined({{shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::name('n'),
                   shared::cgroup(0), shared::duration('d'), shared::timestamp(),
                   shared::print_uid(), shared::extended(),
                   flag('x', "failed", "only calls that failed", setting(&Rodata::failed_only)),
                   flag('F', "full-path", "the file's real path, or the full path if it failed",
                        setting(&Rodata::full_path)),
                   flag('L', "latency", "print the time that each call took"),
                   flag('c', "callers", "print the user stack of each call")},
                  belonging_to("callers", {shared::stack_depth(), shared::stack_storage(),
                                           shared::unwind(), shared::unwind_memory()}),
                  {flag_filter()}}),
      .elsewhere = {{'b', "buffer-pages", "use --ring-size BYTES"},
                    {0, "exec", "put the command at the end, after --"}},
      .hooks = {{"openat", {{{progs::on_openat}}}},
                {"openat2", {{{progs::on_openat2}}}, {}, "calls of openat2 are not seen"},
                {"open", {{{progs::on_open}}}, {}, "calls of open are not seen"},
                {"creat", {{{progs::on_creat}}}, {}, "calls of creat are not seen"},
                {"results", {{{progs::on_opened}}}},
                {"open_by_handle_at",
                 {{{progs::on_handle, progs::on_handle_opened}}},
                 {},
                 "calls of open_by_handle_at are not seen"}},
      .report =
          events<Event>(
              {who<&Event::who>(id::uid, id::pid, id::tid, id::comm),
               derived<Event, descriptor>("fd", "FD", as::wide(as::small, 3),
                                          "descriptor of the file; -1: none"),
               failure<&Event::ret>("error by name; null: it succeeded").with("json"),
               derived<Event, errno_or_0>("errno", "ERR", as::error,
                                          "error of the call; 0: it succeeded")
                   .in_text(),
               derived<Event, flags>("open_flags", "FLAGS", as::octal(8, -8), "flags of open(2)")
                   .or_null()
                   .with("extended"),
               derived<Event, mode>("open_mode", "MODE", as::octal(4, -4),
                                    "permissions of a file that may be created")
                   .with("extended"),
               field<&Event::latency_ns>("latency_ns", "LAT(us)", as::microseconds,
                                         "time of the call")
                   .with("latency"),
               named<&Event::call, kCalls>("call", "CALL", as::text, "system call").with("json"),
               derived<Event, directory>("dirfd", "DIRFD", as::small,
                                         "descriptor that the path is relative to")
                   .with("json"),
               derived<Event, argument>("argument", "ARGUMENT", as::text,
                                        "path as the program passed it")
                   .with("json"),
               derived<Event, incomplete>("incomplete", "CUT", as::small,
                                          "a part of the path is missing")
                   .with("json"),
               who<&Event::who>(id::cgroup),
               derived<Event, path>("path", "PATH", as::rest, "path")})
              .timed_at_begin()
              .with_callers<&Event::callers, &Event::who>("callers")
              .high_rate(),
      .announce = "Tracing opened files",
  };
}
