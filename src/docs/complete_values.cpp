// Completion values from this machine: processes, users, disks, cgroups, kernel functions.
#include <dirent.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cli/naming.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"
#include "coretap/syscalls.hpp"
#include "docs/commands.hpp"
#include "docs/complete.hpp"
#include "kernel/containers.hpp"
#include "kernel/kernel.hpp"
#include "program/kernel_functions.hpp"

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

List list_of_words(const std::set<std::string>& words) {
  List all;  // clang 14 does not initialize aggregates with parentheses
  all.reserve(words.size());
  for (auto& word : words) all.push_back({word});
  return all;
}

List comms(std::string_view) {
  std::set<std::string> names;
  for (auto pid : processes()) names.insert(comm_of(pid));
  return list_of_words(names);
}

List users(std::string_view) {
  List all;
  std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/etc/passwd", "re"), fclose);
  while (auto* entry = file ? fgetpwent(file.get()) : nullptr)
    all.push_back({entry->pw_name, fmt::format("user id {}", entry->pw_uid)});
  return all;
}

List disks_here(std::string_view) {
  List all;
  for (auto& name : entries("/sys/block"))
    all.push_back({name, text_of("/sys/block/" + name + "/dev")});
  return all;
}

List cpus(std::string_view) {
  List all;
  for (auto cpu : online_cpus()) all.push_back({std::to_string(cpu)});
  return all;
}

List syscalls(std::string_view) {
  std::set<std::string> names;
  for (auto& call : all_syscalls()) names.insert(call.name);
  return list_of_words(names);
}

/// "container 3f2a41c0d2b1 (docker)" for cgroup names of container engines; else empty.
std::string container(std::string_view name) {
  auto id = parse_cgroup_path(name).container_id;
  auto engine = name.substr(0, name.find(id));
  if (!engine.ends_with('-')) return {};
  engine.remove_suffix(1);
  return fmt::format("container {} ({})", id.substr(0, 12), engine);
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
  return list_of_words(words);
}

List functions(std::string_view prefix) {
  List all;
  auto wanted = [&](std::string_view name) {
    return name.starts_with(prefix) && name.find_first_of(".$") == name.npos;
  };
  for (auto& f : kernel_functions(FunctionLists::of_this_kernel(), {}, wanted).functions)
    all.push_back({f.name, f.module.empty() ? "" : fmt::format("[{}]", f.module)});
  return all;
}

List tracepoints(std::string_view) {
  List all;
  if (auto names = tracepoint_names())
    for (auto& name : *names) all.push_back({name});
  return all;
}

List tools(std::string_view) {
  List all;
  for (auto& call : all_names()) all.push_back({std::string(call.name), meaning_of(call)});
  return all;
}

List topics(std::string_view prefix) {
  auto all = tools(prefix);
  for (auto& command : commands())
    all.push_back({std::string(command.name), std::string(command.summary)});
  return all;
}

/// Other kinds are completed by the shell, or from the tool's table.
constexpr std::pair<Complete, List (*)(std::string_view prefix)> kKinds[] = {
    {Complete::pid, pids},
    {Complete::comm, comms},
    {Complete::user, users},
    {Complete::cgroup, cgroups},
    {Complete::container,
     [](auto) { return names_of_cgroups(&CgroupNames::container, &CgroupNames::container_id); }},
    {Complete::pod,
     [](auto) { return names_of_cgroups(&CgroupNames::pod, &CgroupNames::pod_uid); }},
    {Complete::unit, [](auto) { return names_of_cgroups(&CgroupNames::unit, nullptr); }},
    {Complete::disk, disks_here},
    {Complete::cpu, cpus},
    {Complete::syscall, syscalls},
    {Complete::function, functions},
    {Complete::tracepoint, tracepoints},
    {Complete::tool, tools},
    {Complete::topic, topics},
};

}  // namespace

std::vector<Completion> values(Complete kind, std::string_view prefix) {
  List all;
  for (auto& [known, list] : kKinds)
    if (known == kind) all = list(prefix);
  std::erase_if(all, [&](auto& c) { return !c.word.starts_with(prefix); });
  if (all.size() > kMostCandidates) all.resize(kMostCandidates);
  return all;
}

}  // namespace coretap
