// dirtop: the directories whose files are read and written most.
#include "fs/dirtop.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "coretap/file_counts.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/ring_io.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "dirtop.skel.h"

using namespace coretap;
using Opt = rodata_of<dirtop_bpf>;
using Key = dirtop_key;
using Line = Row<Key, file_counts>;

namespace {

using Roots = std::vector<std::string>;  ///< the longest first

/// Adds one path, or the matches of a shell pattern.
Result<void> add_roots(Roots& roots, const std::string& pattern) {
  glob_t found{};
  std::unique_ptr<glob_t, decltype(&globfree)> owner(&found, globfree);
  const auto before = roots.size();
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; i++) {
      std::error_code error;
      auto path = std::filesystem::canonical(found.gl_pathv[i], error);
      if (!error && std::filesystem::is_directory(path, error)) roots.push_back(path);
    }
  if (roots.size() > before) return {};
  return usage(fmt::format("--root-directories: '{}' is not a directory", pattern));
}

Result<void> take_roots(Config& c, std::string_view text) {
  auto& roots = c.own<Roots>();
  auto added = each_word(text, [&](auto word) { return add_roots(roots, std::string(word)); });
  std::ranges::stable_sort(roots, std::greater(), &std::string::size);
  return added;
}

/// "/var/log/messages", 1 -> "/var"
std::string_view cut_to_depth(std::string_view path, std::uint64_t depth) {
  std::size_t at = 0;
  for (; depth && at != path.npos; depth--) at = path.find('/', at + 1);
  return at == path.npos ? path : path.substr(0, std::max<std::size_t>(at, 1));
}

/// The directory that the row counts for; none: no directory, or one that was not requested.
Value directory(const Line& l, const FieldContext& context) {
  auto* path = context.row_text(l.key);
  if (!path || path->find('/') == path->npos) return {};
  auto& roots = context.config->own<Roots>();
  for (auto& root : roots)
    if (Config::lies_below(*path, root)) return root;
  if (!roots.empty()) return {};
  auto parent = std::string_view(*path).substr(0, std::max<std::size_t>(path->rfind('/'), 1));
  return std::string(cut_to_depth(parent, context.config->number("depth", UINT64_MAX)));
}

bool wanted(const Line& l, const FieldContext& context) {
  return context.config->own<Roots>().empty() ||
         !std::holds_alternative<std::monostate>(directory(l, context));
}

}  // namespace

TOOL(dirtop) {
  auto roots = value('d', "root-directories", "DIRS",
                     "a row for each of these directories, with everything below it: paths or "
                     "patterns such as '/var/lib/*', separated by commas",
                     take_roots, Complete::directory)
                   .adding_up();
  static const std::string kDescription =
      "System calls that read or write regular files, by the directory that the files are in, with "
      "the bytes that they returned: read, write, their p and v forms, sendfile, splice, "
      "copy_file_range. PATH is the path as seen by the first process that was observed to use the "
      "directory; - is for files in no directory (memfd).\n\n"
      "With --depth, directories below the given depth count for their parent at that depth. With "
      "-d, all files below a given directory count for it, and other files do not count; if given "
      "directories are nested, the innermost one counts.\n\n"
      "Calls that fail do not count.\n\n" +
      std::string(kFileIoSeen);
  return {
      .name = "dirtop",
      .summary = "reads and writes by directory, as a screen",
      .description = kDescription,
      .overhead =
          "a hook on every system call and io_uring request, which adds some tens of nanoseconds "
          "to calls that do not read or write files",
      .examples = {{"dirtop", "redrawn every second; q quits"},
                   {"dirtop --depth 1 -C 5 2", "two reports by top-level directory"},
                   {"dirtop -d '/var/lib/*'", "a row for the directory of each service"},
                   {"dirtop -d /var/log,/srv -s writes", "two directories, the most writes first"},
                   {"dirtop -p 181", "what process 181 reads and writes"}},
      .questions = {{"Which directory's files are read or written most?", "dirtop"},
                    {"Which service's files are written to?", "dirtop -d '/var/lib/*' -C 10 1"}},
      .differs = {{Difference::bcc,
                   "-d is optional. Files count if their path is below a given directory, at any "
                   "depth; there inode numbers are compared, without the device, for 50 levels. "
                   "Bytes are those that calls returned, and all calls that read or write files "
                   "are traced, not two functions."}},
      .object = skeleton<dirtop_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined({shared::screen(),
                         {roots, number(0, "depth", "N",
                                        "directories of at most N components: files in deeper ones "
                                        "count for these",
                                        Range{0, 4096}, Setting{})},
                         shared::task_filters(),
                         {shared::max_keys()}}),
      .hooks = {{"system calls", {{.programs = {progs::on_exit}, .caveat = kFileIoNotSeen}}},
                ring_io_hook()},
      .report = table<Key, file_counts>(maps::directories,
                                        {counts_of_files<Line>(),
                                         derived<Line, directory>("directory", "PATH", as::rest,
                                                                  "path of the directory")
                                             .key_part()},
                                        "bytes,reads,writes", 20)
                    .counted_by(2)
                    .sorted_also_by(words_of_peers_for_counts())
                    .only<Line, wanted>()
                    .one_row_for_each<Line, directory>()
                    .on_screen(),
      .announce = "Tracing reads and writes of files",
      .exclusive = {{"root-directories", "depth"}},
  };
}
