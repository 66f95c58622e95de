// Completion values from this machine: processes, users, disks, cgroups, kernel functions.
#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "cli/naming.hpp"
#include "coretap/fd.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"
#include "coretap/syscalls.hpp"
#include "docs/commands.hpp"
#include "docs/complete.hpp"
#include "kernel/containers.hpp"
#include "kernel/kernel.hpp"
#include "symbols/process_files.hpp"

namespace coretap {

namespace {

using List = std::vector<Completion>;

// Limits: the user is waiting, and longer lists are of no use.
constexpr int kMostDirectories = 4000;

std::vector<std::string> entries(const std::string& directory) {
  std::vector<std::string> names;
  std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(directory.c_str()), closedir);
  while (auto* entry = open ? readdir(open.get()) : nullptr)
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

/// Contents of a small file without the final newline; names may contain others.
std::string text_of(const std::string& path) {
  auto text = read_file(path, 256).value_or("");
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<std::uint64_t> processes() {
  std::vector<std::uint64_t> pids;
  for (auto& name : entries("/proc"))
    if (auto pid = parse_unsigned(name); pid && *pid != static_cast<std::uint64_t>(getpid()))
      pids.push_back(*pid);
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::string comm_of(std::uint64_t pid) { return text_of(fmt::format("/proc/{}/comm", pid)); }

List pids(std::string_view prefix) {
  List all;
  for (auto pid : processes()) {
    auto word = std::to_string(pid);
    if (all.size() < kMostCandidates && word.starts_with(prefix))
      all.push_back({word, comm_of(pid)});
  }
  return all;
}

List comms(std::string_view prefix) {
  std::set<std::string> names;
  for (auto pid : processes())
    if (auto name = comm_of(pid); name.starts_with(prefix)) names.insert(name);
  List all;  // clang 14 does not initialize aggregates with parentheses
  all.reserve(names.size());
  for (auto& word : names) all.push_back({word});
  return all;
}

List users() {
  List all;
  std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/etc/passwd", "re"), fclose);
  while (auto* entry = file ? fgetpwent(file.get()) : nullptr)
    all.push_back({entry->pw_name, fmt::format("user id {}", entry->pw_uid)});
  return all;
}

List disks_here() {
  List all;
  for (auto& name : entries("/sys/block"))
    all.push_back({name, text_of("/sys/block/" + name + "/dev")});
  return all;
}

List cpus() {
  List all;
  for (auto cpu : online_cpus()) all.push_back({std::to_string(cpu)});
  return all;
}

List syscalls() {
  List all;
  for (auto& call : all_syscalls()) all.push_back({call.name});
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.word < b.word; });
  return all;
}

/// "container 3f2a41c0d2b1 (docker)" for cgroup names of container engines; else empty.
std::string container(std::string_view name) {
  constexpr std::string_view kEngines[] = {"docker-", "cri-containerd-", "libpod-", "crio-"};
  for (auto engine : kEngines) {
    if (!name.starts_with(engine)) continue;
    auto id = name.substr(engine.size());
    if (id.size() < 12 ||
        !std::all_of(id.begin(), id.begin() + 12, [](unsigned char c) { return isxdigit(c); }))
      continue;
    engine.remove_suffix(1);
    return fmt::format("container {} ({})", id.substr(0, 12), engine);
  }
  return {};
}

/// Paths below the cgroup v2 mount, with or without its path, as typed; breadth first.
List cgroups(std::string_view prefix) {
  List all;
  auto mount = cgroup2_mount();
  if (!mount) return all;
  auto root = *mount + '/';
  bool absolute = prefix.starts_with('/');
  std::deque<std::string> left{""};
  for (int looked = 0; !left.empty() && looked < kMostDirectories && all.size() < kMostCandidates;
       looked++) {
    auto directory = left.front();
    left.pop_front();
    for (auto& name : entries(root + directory)) {
      auto path = directory + name;
      struct stat st {};
      if (lstat((root + path).c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) continue;
      auto word = absolute ? root + path : path;
      auto below = word + '/';
      if (word.starts_with(prefix))
        all.push_back({word, container(name)});
      else if (!prefix.starts_with(below))
        continue;
      left.push_back(path + '/');
    }
  }
  return all;
}

/// Names, or ids where there is no name.
List names_of_cgroups(std::string CgroupNames::*name, std::string CgroupNames::*id) {
  std::set<std::string> words;
  for (auto& names : Containers().all()) {
    auto word = names.*name;
    if (word.empty() && id) word = (names.*id).substr(0, 12);
    if (!word.empty()) words.insert(word);
  }
  List all;
  for (auto& word : words) all.push_back({word});
  return all;
}

/// Calls back for each line of a file until false is returned; lines are cut at 512 bytes.
template <class Take>
void each_line(const Fd& fd, Take take) {
  symbols::LineReader reader(fd.get(), 512, 256 << 20);
  for (std::string_view line; reader.next(line);)
    if (!take(line)) return;
}

Fd open_tracing(const char* name) {
  auto directory = tracefs();
  return Fd(directory ? openat(*directory, name, O_RDONLY | O_CLOEXEC) : -1);
}

List functions(std::string_view prefix) {
  List all;
  auto add = [&](std::string_view name, std::string_view module) {
    if (name.starts_with(prefix) && name.find_first_of(".$") == name.npos)
      all.push_back({std::string(name), std::string(module)});
    return all.size() < kMostCandidates;
  };
  auto module_of = [](std::string_view rest) {
    auto at = rest.find('[');
    return at == rest.npos ? std::string_view() : rest.substr(at, rest.find(']') + 1 - at);
  };
  // Traceable functions; if that list is unavailable (no function tracer, no rights), all.
  if (auto traceable = open_tracing("available_filter_functions"); traceable.get() >= 0) {
    each_line(traceable, [&](std::string_view line) {
      auto name = line.substr(0, line.find_first_of(" \t"));
      return add(name, module_of(line.substr(name.size())));
    });
    if (!all.empty()) return all;
  }
  Fd symbols(open("/proc/kallsyms", O_RDONLY | O_CLOEXEC));
  each_line(symbols, [&](std::string_view line) {
    auto type = line.find(' ');
    if (type == line.npos || type + 3 > line.size() || !strchr("tTwW", line[type + 1])) return true;
    auto rest = line.substr(type + 3);
    auto name = rest.substr(0, rest.find_first_of(" \t"));
    return add(name, module_of(rest.substr(name.size())));
  });
  return all;
}

List tracepoints(std::string_view prefix) {
  List all;
  each_line(open_tracing("available_events"), [&](std::string_view line) {
    if (line.starts_with(prefix)) all.push_back({std::string(line)});
    return all.size() < kMostCandidates;
  });
  return all;
}

List tools() {
  List all;
  for (auto& call : all_names()) all.push_back({std::string(call.name), meaning_of(call)});
  return all;
}

List topics() {
  auto all = tools();
  for (auto& command : commands())
    all.push_back({std::string(command.name), std::string(command.summary)});
  return all;
}

List all_of(Complete kind, std::string_view prefix) {
  switch (kind) {
    case Complete::pid:
      return pids(prefix);
    case Complete::comm:
      return comms(prefix);
    case Complete::user:
      return users();
    case Complete::cgroup:
      return cgroups(prefix);
    case Complete::container:
      return names_of_cgroups(&CgroupNames::container, &CgroupNames::container_id);
    case Complete::pod:
      return names_of_cgroups(&CgroupNames::pod, &CgroupNames::pod_uid);
    case Complete::unit:
      return names_of_cgroups(&CgroupNames::unit, nullptr);
    case Complete::disk:
      return disks_here();
    case Complete::cpu:
      return cpus();
    case Complete::syscall:
      return syscalls();
    case Complete::function:
      return functions(prefix);
    case Complete::tracepoint:
      return tracepoints(prefix);
    case Complete::tool:
      return tools();
    case Complete::topic:
      return topics();
    // Completed by the shell, or from the tool's table.
    case Complete::nothing:
    case Complete::file:
    case Complete::directory:
    case Complete::command:
    case Complete::sort_key:
      break;
  }
  return {};
}

}  // namespace

std::vector<Completion> values(Complete kind, std::string_view prefix) {
  auto all = all_of(kind, prefix);
  std::erase_if(all, [&](auto& c) { return !c.word.starts_with(prefix); });
  if (all.size() > kMostCandidates) all.resize(kMostCandidates);
  return all;
}

}  // namespace coretap
