// Which tasks, cgroups, system calls and disks.
#include <pwd.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "base/nearest.hpp"
#include "cli/option_parts.hpp"
#include "kernel/disks.hpp"
#include "kernel/syscalls.hpp"

namespace coretap::shared {

namespace {
Option ids(char letter, std::string_view name, std::string_view doc,
           std::vector<std::uint32_t> Config::*member) {
  auto option = same_everywhere(value(
      letter, name, name == "pid" ? "PID,..." : "TID,...", doc,
      [=](Config& c, std::string_view text) -> Result<void> {
        auto list = take_list(name, text, INT32_MAX);
        if (!list) return list.error();
        auto& all = c.*member;
        all.insert(all.end(), list->begin(), list->end());
        return {};
      },
      Complete::pid));
  option.adds_up = true;
  return option;
}
}  // namespace

Option pid() { return ids('p', "pid", "only these processes", &Config::pids); }
Option tid(char letter) { return ids(letter, "tid", "only these threads", &Config::tids); }

namespace {
std::optional<std::uint32_t> user_id(std::string_view name) {
#ifdef CORETAP_STATIC
  // The name service needs shared libraries: a static executable knows the local users only.
  std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/etc/passwd", "re"), fclose);
  while (auto* entry = file ? fgetpwent(file.get()) : nullptr)
    if (name == entry->pw_name) return entry->pw_uid;
#else
  if (auto* entry = getpwnam(std::string(name).c_str())) return entry->pw_uid;
#endif
  return std::nullopt;
}
}  // namespace

Option uid(char letter) {
  return same_everywhere(value(
      letter, "uid", "USER", "only tasks of this user, by name or number",
      [](Config& c, std::string_view text) -> Result<void> {
        if (auto id = parse_unsigned(text); id && *id < UINT32_MAX) {
          c.uid = static_cast<std::uint32_t>(*id);
        } else if (auto id = user_id(text)) {
          c.uid = *id;
        } else {
          return usage(fmt::format("--uid: there is no user '{}'", text));
        }
        return {};
      },
      Complete::user));
}

Option comm(char letter) {
  return same_everywhere(value(
      letter, "comm", "NAME", "only tasks with this command name",
      [](Config& c, std::string_view text) -> Result<void> {
        if (text.empty()) return usage("--comm: an empty name matches no task");
        // The kernel itself cuts names to 15 bytes.
        c.comm = text.substr(0, 15);
        return {};
      },
      Complete::comm));
}

Option cgroup(char letter) {
  return same_everywhere(value(
      letter, "cgroup", "PATH",
      "only tasks in this cgroup (version 2) or below it; a path, absolute or below the "
      "cgroup mount, or an id",
      [](Config& c, std::string_view text) -> Result<void> {
        if (text.empty()) return usage("--cgroup: needs a path or an id");
        c.cgroup = text;
        return {};
      },
      Complete::cgroup));
}

namespace {
Error unknown_syscall(std::string_view name) {
  std::vector<std::string_view> known;
  const auto all = all_syscalls();
  known.reserve(all.size());
  for (auto& call : all) known.push_back(call.name);
  auto hint = did_you_mean(name, known);
  return usage(fmt::format("--syscall: there is no system call '{}'", name),
               hint.empty() ? "name one as man 2 syscalls does" : hint);
}
}  // namespace

Option syscalls(char letter, Setting wanted, Setting some) {
  auto option = same_everywhere(value(
      letter, "syscall", "NAME,...", "only these system calls",
      [=](Config& c, std::string_view text) -> Result<void> {
        while (true) {
          auto name = text.substr(0, text.find(','));
          auto indices = syscall_indices(name);
          if (indices.empty()) return unknown_syscall(name);
          for (auto index : indices) c.set({wanted.offset + index, 1}, 1);
          if (name.size() == text.size()) break;
          text.remove_prefix(name.size() + 1);
        }
        c.set(some, 1);
        return {};
      },
      Complete::syscall));
  option.adds_up = true;
  return option;
}

Option disk() {
  return same_everywhere(value(
      'd', "disk", "DISK", "only this disk: a name as in /sys/block, or MAJOR:MINOR",
      [](Config& c, std::string_view text) -> Result<void> {
        auto number = find_disk(text);
        if (!number) return number.error();
        c.disk = *number;
        return {};
      },
      Complete::disk));
}

Option directory(char letter) {
  return same_everywhere(value(
      letter, "directory", "DIR", "only files below this directory",
      [](Config& c, std::string_view text) -> Result<void> {
        std::unique_ptr<char, decltype(&free)> path(realpath(std::string(text).c_str(), nullptr),
                                                    free);
        struct stat status {};
        if (!path || stat(path.get(), &status) || !S_ISDIR(status.st_mode))
          return usage(fmt::format("--directory: '{}' is not a directory", text));
        c.directory = path.get();
        return {};
      },
      Complete::directory));
}

Option command(char letter) {
  return same_everywhere(value(
      letter, "command", "COMMAND",
      "like -- COMMAND, in one word, which is split at blanks without any quoting",
      [](Config& c, std::string_view text) -> Result<void> {
        if (!c.command.empty())
          return usage("--command: there is a command already", "give one, by --command or --");
        for (std::size_t at = 0; (at = text.find_first_not_of(" \t", at)) != text.npos;) {
          auto end = std::min(text.find_first_of(" \t", at), text.size());
          c.command.emplace_back(text.substr(at, end - at));
          at = end;
        }
        if (c.command.empty()) return usage("--command: needs a command");
        return {};
      },
      Complete::command));
}

std::vector<Option> task_filters(bool uid_letter) {
  return {pid(), tid(), uid(uid_letter ? 'u' : 0), comm(), cgroup()};
}

}  // namespace coretap::shared
