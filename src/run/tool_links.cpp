#include "run/tool_links.hpp"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
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
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(fd.get(), buffer, sizeof buffer)) != 0;) {
    if (got < 0 && errno != EINTR) return failure("cannot read", record, errno);
    if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
  }
  for (std::string_view rest = text; !rest.empty();) {
    auto line = take_until(rest, '\n');
    if (line.starts_with('/')) all.emplace(line);
  }
  return all;
}

bool leads_to(const fs::path& name, const fs::path& executable) {
  std::error_code error;
  return fs::equivalent(name, executable, error) && !error;
}

/// True if tool_called() can parse a name with this prefix, and shells need no quotes for it.
bool fit_prefix(std::string_view prefix) {
  if (prefix.empty()) return true;
  return isalnum(static_cast<unsigned char>(prefix.front())) && prefix.back() == '-' &&
         std::all_of(prefix.begin(), prefix.end(), [](unsigned char c) {
           return isalnum(c) || c == '-' || c == '_' || c == '.' || c == '+';
         });
}

Result<void> take_prefix(Config&, std::string_view prefix) {
  if (fit_prefix(prefix)) return {};
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
  std::vector<fs::path> ours;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    auto name = at->path().filename().native();
    auto call = tool_called(name);
    std::error_code ignored;
    if (!call.name.empty() && (!prefix || name == fmt::format("{}{}", *prefix, call.name)) &&
        at->is_symlink(ignored) && leads_to(at->path(), executable))
      ours.push_back(at->path());
  }
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
  std::vector<fs::path> links;
  while (!path.empty()) {
    fs::path directory = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(path.size(), directory.native().size() + 1));
    if (!directory.is_absolute()) continue;  // a relative name depends on the current directory
    std::error_code error;
    for (fs::directory_iterator at(directory, error), end; !error && at != end;
         at.increment(error)) {
      std::error_code ignored;
      if (at->is_symlink(ignored) && !tool_called(at->path().filename().native()).name.empty() &&
          leads_to(at->path(), executable))
        links.push_back(at->path());
    }
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

int run_link(const Config& config, const std::vector<std::string>& words) {
  Sink out;
  std::optional<std::string_view> prefix;
  if (config.given("prefix")) prefix = config.text("prefix");
  auto executable = this_executable();
  if (!executable) {
    print_error("coretap", executable.error());
    return kFailed;
  }
  if (config.given("list")) {
    auto* path = getenv("PATH");
    for (auto& link : links_on_path(*executable, path ? path : ""))
      out.line(printable(link.native()));
    return end_of(out);
  }
  if (config.given("remove-all")) {
    if (!words.empty() || prefix) {
      print_error("coretap", {"link: --remove-all takes no directory and no prefix",
                              {},
                              "--remove DIRECTORY removes the links of one directory",
                              kUsage});
      return kUsage;
    }
    auto removed = remove_all_links(
        *executable,
        {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"},
        kLinkRecord);
    if (!removed) {
      print_error("coretap", removed.error());
      return kFailed;
    }
    out.line(fmt::format("{} links removed", *removed));
    return end_of(out);
  }
  fs::path home = words.empty() ? executable->parent_path() : fs::path(words[0]);
  auto shown = printable(home.native());
  if (config.given("remove")) {
    auto removed = remove_links(*executable, home, prefix);
    if (!removed) {
      print_error("coretap", removed.error());
      return kFailed;
    }
    out.line(fmt::format("{}: {} links removed", shown, *removed));
  } else {
    auto counts = make_links(*executable, home, prefix.value_or(""));
    if (!counts) {
      print_error("coretap", counts.error());
      return kFailed;
    }
    out.line(fmt::format("{}: {} links created, {} already existed", shown, counts->made,
                         counts->there));
    if (auto kept = record_directory(kLinkRecord, home); !kept)
      fmt::print(stderr, "coretap: note: removing the package will leave these links: {}{}{}\n",
                 kept.error().what, kept.error().why.empty() ? "" : ": ", kept.error().why);
  }
  return end_of(out);
}

}  // namespace coretap
