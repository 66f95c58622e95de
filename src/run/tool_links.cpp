#include "run/tool_links.hpp"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include "coretap/parse.hpp"
#include "text/errors.hpp"

#include "coretap/fd.hpp"
#include "coretap/sanitize.hpp"
#include "lists/lists.hpp"
#include "program/session.hpp"
#include "symbols/process_files.hpp"
#include "text/sink.hpp"

namespace coretap {

namespace fs = std::filesystem;

namespace {

Error failure(std::string_view action, const fs::path& path, std::error_code why) {
  return {fmt::format("{} {}", action, printable(path.native())), why.message()};
}

/// From /proc; if that is not mounted, the path that was passed to execve().
Result<fs::path> this_executable() {
  std::error_code error;
  auto path = fs::canonical("/proc/self/exe", error);
  auto* asked = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (error && asked) path = fs::canonical(asked, error);
  if (error) return failure("cannot find the executable", "/proc/self/exe", error);
  return path;
}

Error failure(std::string_view action, const fs::path& path, int error) {
  return failure(action, path, std::error_code(error, std::generic_category()));
}

/// The directories in the record; none if there is no record.
Result<std::set<fs::path>> recorded(const fs::path& record) {
  std::set<fs::path> all;
  Fd fd(open(record.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && errno == ENOENT) return all;
  if (!fd) return failure("cannot read", record, errno);
  struct stat status {};
  if (fstat(fd.get(), &status) < 0) return failure("cannot read", record, errno);
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022))
    return Error{fmt::format("cannot use {}", printable(record.native())),
                 "it is not a regular file that only this user can write"};
  symbols::LineReader lines(fd.get(), PATH_MAX, 1 << 20);
  for (std::string_view line; lines.next(line);)
    if (line.starts_with('/')) all.emplace(line);
  if (lines.error()) return failure("cannot read", record, lines.error());
  return all;
}

bool leads_to(const fs::path& name, const fs::path& executable) {
  std::error_code error;
  return fs::equivalent(name, executable, error) && !error;
}

/// Links in a directory to the executable that have names of tools, with this prefix, or with any.
std::vector<fs::path> links_in(const fs::path& directory, const fs::path& executable,
                               std::optional<std::string_view> prefix, std::error_code& error) {
  std::vector<fs::path> links;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (!at->is_symlink(ignored)) continue;
    auto name = at->path().filename().native();
    auto call = tool_called(name);
    if (!call.name.empty() && (!prefix || name == fmt::format("{}{}", *prefix, call.name)) &&
        leads_to(at->path(), executable))
      links.push_back(at->path());
  }
  return links;
}

/// Takes a prefix if tool_called() can parse names with it, and shells need no quotes for it.
Result<void> take_prefix(Config&, std::string_view prefix) {
  auto fits = [](unsigned char c) {
    return isalnum(c) ||
           std::string_view("-_.+").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (prefix.empty() || (isalnum(static_cast<unsigned char>(prefix.front())) &&
                         prefix.back() == '-' && std::ranges::all_of(prefix, fits)))
    return {};
  return Error{
      fmt::format("--prefix: '{}' is not a usable prefix", prefix),
      {},
      "give letters, digits and . _ + -, the last a '-', such as ct-; see coretap link --help",
      kUsage};
}

}  // namespace

std::vector<Option> link_options() {
  return {
      value(0, "prefix", "PREFIX",
            "prefix of the names, which ends in a hyphen: with ct- they are ct-NAME", take_prefix),
      flag(0, "remove", "remove links to this executable instead: those with this prefix, or all"),
      flag(0, "remove-all",
           "remove all links to this executable: in the usual program directories, and wherever "
           "this command created some (packages do this when they are removed)"),
      flag(0, "list", "print the links to this executable that are on PATH, and exit")};
}

Called tool_called(std::string_view name) {
  if (name == "coretap") return {};  // the usual case: looking for other names builds all tools
  auto dash = name.rfind('-');
  auto behind = dash == name.npos || dash == 0 ? std::string_view() : name.substr(dash + 1);
  for (auto own : {name, behind}) {
    if (auto* entry = find_tool(own)) return {entry, entry->name, {}};
    for (auto* command : kListCommands)
      if (command->name == own) return {nullptr, command->name, {}};
  }
  auto whole = called(name);
  return whole.tool || behind.empty() ? whole : called(behind);
}

std::vector<std::string_view> link_names() {
  std::vector<std::string_view> names;
  for (auto& call : all_names()) names.push_back(call.name);
  for (auto* command : kListCommands) names.push_back(command->name);
  return names;
}

Result<LinkCounts> make_links(const fs::path& executable, const fs::path& directory,
                              std::string_view prefix) {
  std::error_code error;
  auto target = fs::canonical(executable, error);
  if (error) return failure("cannot find", executable, error);
  auto home = fs::canonical(directory, error);
  if (!error && !fs::is_directory(home)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) return failure("cannot create links in", directory, error);

  LinkCounts counts;
  std::vector<fs::path> wanted;
  std::vector<std::string> taken;
  for (auto own : link_names()) {
    auto name = home / fmt::format("{}{}", prefix, own);
    if (leads_to(name, target))
      counts.there++;
    else if (fs::symlink_status(name, error).type() != fs::file_type::not_found)
      taken.push_back(name.filename());
    else
      wanted.push_back(name);
  }
  if (!taken.empty())
    return Error{
        fmt::format("no link was created: {} has {} that {} not ours", printable(home.native()),
                    fmt::join(taken, ", "), taken.size() == 1 ? "is" : "are"),
        {},
        "choose other names with --prefix, such as --prefix ct-, or another directory"};

  for (auto& name : wanted) {
    fs::create_symlink(target.lexically_relative(home), name, error);
    if (error) {
      std::error_code ignored;
      for (auto& made : wanted) {
        if (made == name) break;
        fs::remove(made, ignored);
      }
      return failure("no link was created: cannot create", name, error);
    }
  }
  counts.made = wanted.size();
  return counts;
}

Result<std::size_t> remove_links(const fs::path& executable, const fs::path& directory,
                                 std::optional<std::string_view> prefix) {
  std::error_code error;
  const auto ours = links_in(directory, executable, prefix, error);
  if (error) return failure("cannot read", directory, error);
  for (auto& link : ours)
    if (!fs::remove(link, error) && error) return failure("cannot remove", link, error);
  return ours.size();
}

Result<void> record_directory(const fs::path& record, const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(record.parent_path(), error)) return {};
  auto path = fs::canonical(directory, error);
  if (error) return failure("cannot find", directory, error);
  if (path.native().find('\n') != std::string::npos)
    return Error{"its name has a line break", {}, {}};
  auto known = recorded(record);
  if (!known) return known.error();
  if (known->contains(path)) return {};
  Fd fd(open(record.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  auto line = path.native() + '\n';
  if (!fd || write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return failure("cannot write", record, errno);
  return {};
}

Result<std::size_t> remove_all_links(const fs::path& executable, std::vector<fs::path> directories,
                                     const fs::path& record) {
  auto known = recorded(record);
  if (known) directories.insert(directories.end(), known->begin(), known->end());
  std::size_t all = 0;
  std::optional<Error> failed;
  for (auto& directory : directories) {
    std::error_code gone;
    if (!fs::is_directory(directory, gone)) continue;
    if (auto removed = remove_links(executable, directory, {}))
      all += *removed;
    else if (!failed)
      failed = removed.error();
  }
  if (!known) return known.error();
  if (failed) return *failed;
  std::error_code error;
  fs::remove(record, error);
  if (error) return failure("cannot remove", record, error);
  return all;
}

std::vector<fs::path> links_on_path(const fs::path& executable, std::string_view path) {
  std::set<fs::path> links;
  while (!path.empty()) {
    const fs::path directory = take_until(path, ':');
    if (!directory.is_absolute()) continue;  // a relative name depends on the current directory
    std::error_code error;
    for (auto& link : links_in(directory, executable, {}, error)) links.insert(link);
  }
  return {links.begin(), links.end()};
}

namespace {

/// Does what the options say; prints the result.
Result<void> link_tools(const Config& config, const std::vector<std::string>& words, Sink& out) {
  std::optional<std::string_view> prefix;
  if (config.given("prefix")) prefix = config.text("prefix");
  auto executable = this_executable();
  if (!executable) return executable.error();
  if (config.given("list")) {
    auto* path = getenv("PATH");
    for (auto& link : links_on_path(*executable, path ? path : ""))
      out.line(printable(link.native()));
    return {};
  }
  if (config.given("remove-all")) {
    if (!words.empty() || prefix)
      return Error{"link: --remove-all takes no directory and no prefix",
                   {},
                   "--remove DIRECTORY removes the links of one directory",
                   kUsage};
    auto removed = remove_all_links(
        *executable,
        {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"},
        kLinkRecord);
    if (!removed) return removed.error();
    out.line(fmt::format("{} links removed", *removed));
    return {};
  }
  fs::path home = words.empty() ? executable->parent_path() : fs::path(words[0]);
  auto shown = printable(home.native());
  if (config.given("remove")) {
    auto removed = remove_links(*executable, home, prefix);
    if (!removed) return removed.error();
    out.line(fmt::format("{}: {} links removed", shown, *removed));
    return {};
  }
  auto counts = make_links(*executable, home, prefix.value_or(""));
  if (!counts) return counts.error();
  out.line(
      fmt::format("{}: {} links created, {} already existed", shown, counts->made, counts->there));
  if (auto kept = record_directory(kLinkRecord, home); !kept)
    fmt::print(stderr, "coretap: note: removing the package will leave these links: {}{}{}\n",
               kept.error().what, kept.error().why.empty() ? "" : ": ", kept.error().why);
  return {};
}

}  // namespace

int run_link(const Config& config, const std::vector<std::string>& words) {
  Sink out;
  auto done = link_tools(config, words, out);
  if (done) return end_of(out);
  print_error("coretap", done.error());
  return done.error().status;
}

}  // namespace coretap
