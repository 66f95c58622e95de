#include "why/counters.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "coretap/cpu_times.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"
#include "kernel/kernel.hpp"
#include "why/lines.hpp"

namespace coretap::why {

namespace {

double number(const std::string& word) { return std::strtod(word.c_str(), nullptr); }

/// "KEY VALUE" lines.
void read_pairs(Counters& to, const std::string& path, const std::string& prefix) {
  each_line(path, [&](auto& words) {
    if (words.size() == 2) to[prefix + words[0]] = number(words[1]);
  });
}

/// A line of names, then a line of values, both with the protocol in front.
void read_net(Counters& to, const std::string& path) {
  std::vector<std::string> names;
  each_line(path, [&](auto& words) {
    if (names.empty() || names[0] != words[0]) {
      names = words;
      return;
    }
    std::string prefix = words[0] == "Udp:" ? "udp." : words[0].starts_with("Tcp") ? "tcp." : "";
    for (std::size_t i = 1; !prefix.empty() && i < words.size() && i < names.size(); i++)
      to[prefix + names[i]] = number(words[i]);
    names.clear();
  });
}

void read_disks(Counters& to) {
  constexpr std::pair<std::size_t, const char*> kFields[] = {
      {3, "reads"},       {6, "read_ms"},   {7, "writes"},      {10, "write_ms"}, {12, "busy_ms"},
      {13, "waiting_ms"}, {14, "discards"}, {17, "discard_ms"}, {18, "flushes"},  {19, "flush_ms"}};
  each_line("/proc/diskstats", [&](auto& words) {
    if (words.size() < 14 || words[2].starts_with("ram")) return;
    // Partitions are counted with their disks.
    if (!read_file(fmt::format("/sys/block/{}/dev", words[2]), 64)) return;
    for (auto& [field, name] : kFields)
      if (field < words.size())
        to[fmt::format("disk.{}.{}", words[2], name)] = number(words[field]);
    // Only SCSI and SATA disks count them.
    if (auto errors = read_file(fmt::format("/sys/block/{}/device/ioerr_cnt", words[2]), 64))
      to[fmt::format("disk.{}.errors", words[2])] = number(*errors);
  });
}

void read_cpus(Counters& to) {
  constexpr double kTicks = 100;  // USER_HZ
  auto text = read_file("/proc/stat", kProcStat).value_or("");
  if (auto started = named_number(text, "processes"))
    to["processes"] = static_cast<double>(*started);
  for (auto& cpu : parse_cpu_times(text).value_or(std::vector<CpuTimes>())) {
    if (cpu.cpu < 0) continue;
    to[fmt::format("cpu{}.idle_s", cpu.cpu)] = static_cast<double>(cpu.idle + cpu.iowait) / kTicks;
    to[fmt::format("cpu{}.steal_s", cpu.cpu)] = static_cast<double>(cpu.steal) / kTicks;
  }
}

/// The time in which some task was held up (PSI), in us.
void read_stall(Counters& to, const std::string& path, const std::string& name) {
  each_line(path, [&](auto& words) {
    if (words[0] == "some" && words.back().starts_with("total="))
      to[name] = number(words.back().substr(6));
  });
}

/// Where file systems of cgroups are mounted: "" is version 2.
std::map<std::string, std::string> cgroup_mounts() {
  std::map<std::string, std::string> mounts;
  if (auto mount = cgroup2_mount()) mounts.emplace("", *mount);
  for (auto& mount : mounts_in(read_file("/proc/self/mountinfo", 4 << 20).value_or(""))) {
    if (mount.type != "cgroup") continue;
    for (std::string_view options = mount.options; !options.empty();)
      mounts.emplace(take_until(options, ','), mount.directory);
  }
  return mounts;
}

std::vector<std::string> with_those_above(const std::string& mount, std::string path) {
  std::vector<std::string> all;
  while (path.ends_with('/')) path.pop_back();
  while (!path.empty() && all.size() < 64) {
    all.push_back(mount + path);
    path.resize(path.rfind('/') == path.npos ? 0 : path.rfind('/'));
  }
  return all;
}

constexpr const char* kControllers[] = {"cpu", "memory", "blkio"};

std::string key_of(std::string_view controller) {
  return controller == "blkio" ? "io" : std::string(controller);
}

/// A limit, and the directory that has it.
struct Limit {
  std::string directory, value;
};

/// The innermost directory in which one of the files has a limit.
std::optional<Limit> limit_of(const CgroupFiles& cgroup, std::string_view controller,
                              const std::string& file, const std::string& file_of_version_1) {
  auto found = cgroup.directories.find(controller);
  if (found == cgroup.directories.end()) return {};
  for (auto& directory : found->second)
    for (auto& name : {file, file_of_version_1}) {
      auto text = name.empty() ? std::nullopt : read_file(directory + "/" + name, 4096);
      if (!text) continue;
      while (text->ends_with('\n')) text->pop_back();
      // Version 1 has -1, or a number of pages that is no limit.
      const bool pages = text->size() > 17 && text->find_first_not_of("0123456789") == text->npos;
      if (text->empty() || text->starts_with("max") || *text == "-1" || pages) continue;
      return Limit{directory, *text};
    }
  return {};
}

std::optional<Limit> cpu_limit(const CgroupFiles& cgroup) {
  auto limit = limit_of(cgroup, "cpu", "cpu.max", "cpu.cfs_quota_us");
  if (limit && limit->value.find(' ') == std::string::npos)
    if (auto period = read_number(limit->directory + "/cpu.cfs_period_us"))
      limit->value += fmt::format(" {}", *period);
  return limit;
}

}  // namespace

CgroupFiles CgroupFiles::of_process(std::uint32_t pid) {
  CgroupFiles files;
  auto mounts = cgroup_mounts();
  each_line(fmt::format("/proc/{}/cgroup", pid), [&](auto& words) {
    auto& line = words[0];
    auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) return;
    auto controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    for (auto* controller : kControllers) {
      const bool here =
          controllers.empty() ||
          (',' + controllers + ',').find(fmt::format(",{},", controller)) != std::string::npos;
      auto mount = mounts.find(controllers.empty() ? "" : controller);
      if (!here || mount == mounts.end()) continue;
      auto& directories = files.directories[key_of(controller)];
      if (directories.empty() || !controllers.empty())
        directories = with_those_above(mount->second, path);
    }
  });
  return files;
}

CgroupFiles CgroupFiles::of_path(const std::string& path) {
  CgroupFiles files;
  auto mount = cgroup2_mount();
  if (!mount) return files;
  for (auto* controller : kControllers)
    files.directories[key_of(controller)] = with_those_above(*mount, path);
  return files;
}

Counters read_counters(const CgroupFiles& cgroup, std::uint32_t pid) {
  Counters all;
  read_pairs(all, "/proc/vmstat", "vmstat.");
  const auto net = pid ? fmt::format("/proc/{}/net", pid) : std::string("/proc/net");
  read_net(all, net + "/snmp");
  read_net(all, net + "/netstat");
  read_disks(all);
  read_cpus(all);
  for (auto* resource : {"cpu", "memory", "io"})
    read_stall(all, fmt::format("/proc/pressure/{}", resource),
               fmt::format("psi.{}.some_us", resource));
  if (auto limit = cpu_limit(cgroup))
    read_pairs(all, limit->directory + "/cpu.stat", "cgroup.cpu.");
  auto memory = limit_of(cgroup, "memory", "memory.max", "memory.limit_in_bytes");
  auto high = limit_of(cgroup, "memory", "memory.high", "");
  for (auto& limit : {memory, high}) {
    if (!limit) continue;
    read_pairs(all, limit->directory + "/memory.events", "cgroup.memory.");
    read_pairs(all, limit->directory + "/memory.stat", "cgroup.memory.stat.");
    read_stall(all, limit->directory + "/memory.pressure", "cgroup.memory.some_us");
    // Version 1: the charges that did not fit.
    if (auto fails = read_number(limit->directory + "/memory.failcnt"))
      all["cgroup.memory.max"] = static_cast<double>(*fails);
  }
  return all;
}

Counters growth(const Counters& from, const Counters& to) {
  Counters grown;
  for (auto& [name, value] : to) {
    auto before = from.find(name);
    if (before != from.end() && value != before->second) grown[name] = value - before->second;
  }
  return grown;
}

std::map<std::string, std::string, std::less<>> read_settings(const CgroupFiles& cgroup) {
  std::map<std::string, std::string, std::less<>> all;
  if (auto cpu = cpu_limit(cgroup)) {
    all["cpu.max"] = cpu->value;
    all["cgroup.cpu"] = cpu->directory;
  }
  if (auto most = limit_of(cgroup, "memory", "memory.max", "memory.limit_in_bytes")) {
    all["memory.max"] = most->value;
    all["cgroup.memory"] = most->directory;
  }
  if (auto high = limit_of(cgroup, "memory", "memory.high", "")) all["memory.high"] = high->value;
  if (auto io = limit_of(cgroup, "io", "io.max", "")) all["io.max"] = io->value;
  return all;
}

}  // namespace coretap::why
