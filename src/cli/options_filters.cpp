// Options that select tasks, cgroups, system calls and disks.
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "coretap/disks.hpp"
#include "coretap/nearest.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/syscalls.hpp"
#include "kernel/containers.hpp"
#include "lib/core/shared.h"

namespace coretap::shared {

namespace {

/// A list option: values of repeated options are combined.
Option list_of(Option option) {
  option.adds_up = true;
  return same_everywhere(std::move(option));
}

Option ids(char letter, std::string_view name, std::string_view doc,
           std::vector<std::uint32_t> Config::Tasks::*member) {
  auto option = same_everywhere(comma_list(
      letter, name, name == "tid" ? "TID,..." : "PID,...", doc,
      [=](Config& c, std::string_view part) {
        auto n = parse_unsigned(part);
        if (!n || !*n || *n > INT32_MAX) return false;
        (c.tasks.*member).push_back(static_cast<std::uint32_t>(*n));
        return true;
      },
      fmt::format("numbers from 1 to {}", INT32_MAX),
      fmt::format("separate them by commas: --{} 1,203", name)));
  option.complete = Complete::pid;
  return option;
}
}  // namespace

Option pid(char letter) { return ids(letter, "pid", "only these processes", &Config::Tasks::pids); }
Option not_pid() { return ids(0, "not-pid", "exclude these processes", &Config::Tasks::not_pids); }
Option tid(char letter) { return ids(letter, "tid", "only these threads", &Config::Tasks::tids); }

Option ppid(char letter, Setting wanted) {
  return same_everywhere(value(
      letter, "ppid", "PID", "only children of this process",
      [=](Config& c, std::string_view text) -> Result<void> {
        auto pid = take_number("--ppid", text, 1, INT32_MAX, parse_unsigned);
        if (!pid) return pid.error();
        // A parent that does not exist has no children.
        if (kill(static_cast<pid_t>(*pid), 0) && errno != EPERM)
          return usage(fmt::format("--ppid {}: there is no such process", *pid),
                       "process ids are those of this pid namespace");
        c.set(wanted, *pid);
        return {};
      },
      Complete::pid));
}

namespace {
std::optional<std::uint32_t> user_id(std::string_view name) {
#ifdef CORETAP_STATIC
  // The name service switch needs shared libraries: a static executable knows local users only.
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
  return list_of(value(
      letter, "uid", "USER,...", "only tasks of these users, by name or number",
      [](Config& c, std::string_view text) {
        return each_word(text, [&](std::string_view user) -> Result<void> {
          if (auto id = parse_unsigned(user); id && *id < UINT32_MAX)
            c.tasks.uids.push_back(static_cast<std::uint32_t>(*id));
          else if (auto id = user_id(user))
            c.tasks.uids.push_back(*id);
          else
            return usage(fmt::format("--uid: there is no user '{}'", user),
                         fmt::format("give names, or numbers from 0 to {}", UINT32_MAX - 1));
          return {};
        });
      },
      Complete::user));
}

namespace {
Option comms(char letter, std::string_view name, std::string_view doc,
             std::vector<std::string> Config::Tasks::*member) {
  return list_of(value(
      letter, name, "NAME,...", doc,
      [=](Config& c, std::string_view text) {
        return each_word(text, [&](std::string_view comm) -> Result<void> {
          if (comm.empty()) return usage(fmt::format("--{}: an empty name matches no task", name));
          // The kernel truncates command names.
          (c.tasks.*member).emplace_back(comm.substr(0, COMM_LEN - 1));
          return {};
        });
      },
      Complete::comm));
}
}  // namespace

Option comm(char letter) {
  return comms(letter, "comm", "only tasks with one of these command names", &Config::Tasks::comms);
}
Option not_comm() {
  return comms(0, "not-comm", "exclude tasks with one of these command names",
               &Config::Tasks::not_comms);
}

Option name(char letter) {
  return list_of(value(
      letter, "name", "TEXT", "only tasks with this text in their command name",
      [](Config& c, std::string_view text) -> Result<void> {
        auto all = text.size();
        for (auto& other : c.tasks.names) all += other.size();
        if (text.empty()) return usage("--name: an empty text matches every name");
        if (text.size() >= COMM_LEN)
          return usage(fmt::format("--name: '{}' is longer than any command name", text),
                       fmt::format("the kernel truncates them to {} bytes", COMM_LEN - 1));
        if (all > NAME_BITS)
          return usage(
              fmt::format("--name: all texts together are longer than {} bytes", NAME_BITS),
              "give fewer or shorter ones");
        c.tasks.names.emplace_back(text);
        return {};
      },
      Complete::comm));
}

namespace {
using Find = Result<std::string> (Containers::*)(std::string_view);

Option in_found(std::string_view name, std::string_view metavar, std::string_view doc, Find find,
                Complete complete) {
  return same_everywhere(value(
      0, name, metavar, doc,
      [=](Config& c, std::string_view text) -> Result<void> {
        if (text.empty()) return usage(fmt::format("--{}: needs a name", name));
        if (!c.tasks.cgroup.empty())
          return usage(fmt::format("--{}: another option has set the cgroup", name),
                       "give one of --cgroup, --container, --pod and --unit");
        Containers here;
        auto path = (here.*find)(text);
        if (!path) return path.error();
        c.tasks.cgroup = *path;
        return {};
      },
      complete));
}
}  // namespace

std::vector<Option> container_filters() {
  return {in_found("container", "NAME|ID",
                   "only tasks in this container, given by name, by id or by the start of its id",
                   &Containers::find_container, Complete::container),
          in_found("pod", "NAME|UID", "only tasks in this Kubernetes pod", &Containers::find_pod,
                   Complete::pod),
          in_found("unit", "NAME", "only tasks in this systemd unit", &Containers::find_unit,
                   Complete::unit)};
}

Option containers() {
  return same_everywhere(
      flag(0, "containers", "add columns with the container, pod and systemd unit of each task"));
}

Option cgroup(char letter) {
  return same_everywhere(value(
      letter, "cgroup", "PATH",
      "only tasks in this cgroup (version 2) or below it; a path, absolute or below the "
      "cgroup mount, or an id",
      [](Config& c, std::string_view text) -> Result<void> {
        if (text.empty()) return usage("--cgroup: needs a path or an id");
        if (!c.tasks.cgroup.empty())
          return usage("--cgroup: another option has set the cgroup",
                       "give one of --cgroup, --container, --pod and --unit");
        c.tasks.cgroup = text;
        return {};
      },
      Complete::cgroup));
}

Option cgroup_not(std::string_view theirs, std::string_view instead) {
  auto option = cgroup('c');
  option.by_letter = [theirs, instead](std::string_view text) -> Result<void> {
    if (!parse_unsigned(text)) return {};
    return usage(fmt::format("-c {}: {} in bcc, a cgroup here", text, theirs),
                 fmt::format("use --{1} {0} or --cgroup {0}", text, instead));
  };
  return option;
}

namespace {
Error unknown_syscall(std::string_view name) {
  std::vector<std::string_view> known;
  const auto all = all_syscalls();
  known.reserve(all.size());
  for (auto& call : all) known.push_back(call.name);
  auto hint = did_you_mean(name, known);
  return usage(fmt::format("--syscall: there is no system call '{}'", name),
               hint.empty() ? "use the names in man 2 syscalls" : hint);
}
}  // namespace

Option syscalls(char letter, Setting wanted, Setting some) {
  return list_of(value(
      letter, "syscall", "NAME,...", "only these system calls",
      [=](Config& c, std::string_view text) -> Result<void> {
        c.set(some, 1);
        return each_word(text, [&](std::string_view name) -> Result<void> {
          auto indices = syscall_indices(name);
          if (indices.empty()) return unknown_syscall(name);
          for (auto index : indices) c.set({wanted.offset + index, 1}, 1);
          return {};
        });
      },
      Complete::syscall));
}

Option disk() {
  return same_everywhere(value(
      'd', "disk", "DISK", "only this disk: a name as in /sys/block, or MAJOR:MINOR",
      [](Config& c, std::string_view text) -> Result<void> {
        auto number = find_disk(text);
        if (!number) return number.error();
        c.places.disk = *number;
        return {};
      },
      Complete::disk));
}

Option request_disk() {
  auto option = disk();
  option.apply = [find = option.apply](Config& c, std::string_view text) -> Result<void> {
    if (auto found = find(c, text); !found) return found;
    auto number = disk_of_requests(*c.places.disk);
    if (!number) return number.error();
    c.places.disk = *number;
    return {};
  };
  return option;
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
        c.places.directory = path.get();
        return {};
      },
      Complete::directory));
}

Option command(char letter) {
  return same_everywhere(value(
      letter, "command", "COMMAND",
      "like -- COMMAND, as one string, split at spaces (no shell quoting)",
      [](Config& c, std::string_view text) -> Result<void> {
        if (!c.command.empty())
          return usage("--command: there is a command already", "give one, with --command or --");
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
