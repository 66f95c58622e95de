// filegone: files and directories that are removed or renamed, with the process.
#include "fs/filegone.h"

#include <fnmatch.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/given_path.hpp"
#include "coretap/removal.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "filegone.skel.h"

using namespace coretap;
using Event = filegone_event;
using Opt = rodata_of<filegone_bpf>;

namespace {

bool renames(const Event& e) { return e.call >= REMOVAL_RENAME; }

std::string action(const Event& e) {
  if (!renames(e)) return "DELETE";
  return e.flags & FILEGONE_EXCHANGE ? "EXCHANGE" : "RENAME";
}
Value path(const Event& e) { return given_path_of(e, e.path); }
Value new_path(const Event& e) { return renames(e) ? given_path_of(e, e.to) : Value(); }

std::string shown(const Event& e) {
  auto word = [](const Value& v) {
    auto* text = std::get_if<std::string>(&v);
    return text ? *text : std::string("-");
  };
  return word(path(e)) + (renames(e) ? " > " + word(new_path(e)) : "");
}

using Patterns = std::vector<std::string>;

/// Like -name and -path of find(1): a pattern without a slash matches the last component.
bool matches(const std::string& pattern, const Value& path) {
  auto* text = std::get_if<std::string>(&path);
  if (!text) return false;
  auto name = *text;
  if (pattern.find('/') == pattern.npos) {
    name.resize(name.find_last_not_of('/') + 1);
    name.erase(0, name.rfind('/') + 1);
  }
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool wanted(const Config& config, const void* record) {
  auto& patterns = config.own<Patterns>();
  if (patterns.empty()) return true;
  auto& e = *static_cast<const Event*>(record);
  auto from = path(e), to = new_path(e);
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](auto& p) { return matches(p, from) || matches(p, to); });
}

Option files() {
  return value('f', "file", "GLOB",
               "only files whose name (path, if GLOB has a slash) matches; any of several",
               [](Config& c, std::string_view text) -> Result<void> {
                 if (text.empty())
                   return usage("--file: the pattern is empty", "a name, or '*.log'");
                 c.own<Patterns>().emplace_back(text);
                 return {};
               })
      .adding_up();
}

bool cut(const Event& e) { return incomplete(e.path) || (renames(e) && incomplete(e.to)); }

}  // namespace

TOOL(filegone) {
  return {
      .name = "filegone",
      .summary = "files and directories that are removed or renamed, and by whom",
      .description =
          "One line per call of unlink, unlinkat, rmdir, rename, renameat and renameat2 that "
          "succeeds; with --failed, one per call that fails. ACTION is DELETE, RENAME, or EXCHANGE "
          "if two files swap names. FILE is the path passed to the call, for renames with the new "
          "one ('old > new'): '-' if its memory could not be read, with '...' if it is longer than "
          "4095 bytes. A rename also removes a file that already has the new name.\n\n"
          "With --file GLOB, a shell pattern (* ? [...]), only files with a matching name: the "
          "last component of FILE, for renames that of the old or the new path. A pattern with a "
          "slash is compared with all of FILE, which is the full path with --full-path; * matches "
          "slashes, too.\n\n"
          "A file that is open, or has another hard link, still exists after its name is "
          "removed.\n\n"
          "Not seen: removals and renames by io_uring, the kernel itself (NFS server, overlays) "
          "and 32-bit programs on a 64-bit kernel.",
      .overhead =
          "two hooks per such call; a small cost on every other system call, because the kernel "
          "then takes its slow path",
      .examples = {{"filegone", "all files that are removed or renamed"},
                   {"filegone -F -n rsync", "full paths, by programs with this in their name"},
                   {"filegone -x", "attempts that failed"},
                   {"filegone -F -f '/etc/*' -f '*.conf'",
                    "files below /etc, and names that end in .conf"},
                   {"filegone -- make clean", "files removed or renamed by a command"}},
      .questions = {{"Where did that file go: which process removes or renames it?",
                     "filegone -F -f '*.log'"},
                    {"Why can a program not remove a file?", "filegone -x -p 1234"}},
      .differs = {{Difference::bcc,
                   "FILE is the path passed to the call. There it is the last component. Renames "
                   "that swap two files are shown as EXCHANGE."}},
      .object = skeleton<filegone_bpf>(),
      .options =
          joined({{shared::full_path<Opt>(), files(), shared::name('n'), shared::duration('d'),
                   flag('x', "failed", "only calls that failed", setting(&Opt::failed_only))},
                  shared::task_filters()}),
      // Some of these calls do not exist on all architectures.
      .hooks = {{"results", {{{progs::on_gone}}}},
                {"rmdir", {{{progs::on_rmdir}}}, {}, "calls of rmdir are not seen"},
                {"unlinkat", {{{progs::on_unlinkat}}}},
                {"renameat2", {{{progs::on_renameat2}}}},
                {"unlink", {{{progs::on_unlink}}}, {}, "calls of unlink are not seen"},
                {"rename", {{{progs::on_rename}}}, {}, "calls of rename are not seen"},
                {"renameat", {{{progs::on_renameat}}}, {}, "calls of renameat are not seen"}},
      .report =
          events<Event>(
              {who<&Event::who>(id::pid, id::comm, id::tid),
               derived<Event, action>("action", "ACTION", as::wide(as::text, -8),
                                      "DELETE, RENAME or EXCHANGE")
                   .bounded(),
               failure<&Event::ret>("why it failed; null: it succeeded").with("failed"),
               with("json",
                    {named<&Event::call, kRemovalCalls>("call", "CALL", as::text, "system call"),
                     field<&Event::latency_ns>("latency_ns", "LAT(us)", as::microseconds,
                                               "time of the call"),
                     derived<Event, path>("file", "OLD", as::text, "path of the file"),
                     derived<Event, new_path>("new_file", "NEW", as::text,
                                              "its new path; null: it has none"),
                     derived<Event, cut>("incomplete", "CUT", as::small,
                                         "a part of a path is missing"),
                     who<&Event::who>(id::uid)}),
               who<&Event::who>(id::cgroup),
               derived<Event, shown>("shown_file", "FILE", as::rest,
                                     "path of the file; for renames also the new one")
                   .in_text()})
              .timed_at_begin()
              .only(wanted)
              .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .announce = "Tracing files that are removed or renamed",
  };
}
