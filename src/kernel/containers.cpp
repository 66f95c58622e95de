#include "kernel/containers.hpp"

#include <rapidjson/document.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "coretap/clock.hpp"
#include "coretap/small_files.hpp"
#include "kernel/kernel.hpp"

namespace coretap {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kIdDigits = 64;
constexpr std::size_t kMostStateBytes = 4 << 20;        // limit for a runtime's file
constexpr std::uint64_t kBetweenLooks = 1'000'000'000;  // ns: new cgroups appear all the time
constexpr std::size_t kMostCgroups = 1 << 16;

bool is_id(std::string_view text) {
  return text.size() == kIdDigits &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return isxdigit(c); });
}

/// Accepts "docker-0123...cdef.scope" and "0123...cdef"; empty: not a container.
std::string_view container_id(std::string_view part) {
  if (part.ends_with(".scope")) part.remove_suffix(6);
  for (std::string_view engine : {"docker-", "libpod-", "crio-", "cri-containerd-", "nerdctl-"})
    if (part.starts_with(engine)) part.remove_prefix(engine.size());
  return is_id(part) ? part : std::string_view();
}

/// Accepts "kubepods-burstable-pod0123_....slice" and "pod0123-..."; -> the uid with hyphens.
std::string pod_uid(std::string_view part) {
  constexpr std::size_t kUid = 36;
  if (part.ends_with(".slice")) part.remove_suffix(6);
  auto at = part.starts_with("pod") ? 0 : part.find("-pod");
  if (at == part.npos) return {};
  std::string uid(part.substr(at + (at ? 4 : 3)));
  std::replace(uid.begin(), uid.end(), '_', '-');
  auto is_part = [](unsigned char c) { return isxdigit(c) || c == '-'; };
  // Static pods (declared in files on the node) have a hash of 32 digits.
  bool right =
      (uid.size() == kUid || uid.size() == 32) && std::all_of(uid.begin(), uid.end(), is_part);
  return right ? uid : std::string();
}

bool is_unit(std::string_view part) {
  return part.ends_with(".service") || part.ends_with(".scope") || part.ends_with(".socket") ||
         part.ends_with(".mount");
}

rapidjson::Document json_of(const std::string& path) {
  rapidjson::Document document;
  const auto text = read_file(path, kMostStateBytes).value_or("");
  const std::string_view view = text;
  document.Parse(view.data(), view.size());
  return document;
}

std::string text_of(const rapidjson::Value& object, const char* key) {
  if (!object.IsObject()) return {};
  auto found = object.FindMember(key);
  if (found == object.MemberEnd() || !found->value.IsString()) return {};
  return {found->value.GetString(), found->value.GetStringLength()};
}

/// Docker's config.v2.json stores the name as "/web".
std::string docker_name(const std::string& directory, const std::string& id) {
  auto name = text_of(json_of(fmt::format("{}/{}/config.v2.json", directory, id)), "Name");
  return name.starts_with('/') ? name.substr(1) : name;
}

std::string podman_name(const std::string& file, const std::string& id) {
  auto all = json_of(file);
  if (!all.IsArray()) return {};
  for (auto& one : all.GetArray()) {
    if (text_of(one, "id") != id) continue;
    auto names = one.FindMember("names");
    if (names == one.MemberEnd() || !names->value.IsArray() || names->value.Empty() ||
        !names->value[0].IsString())
      return {};
    return names->value[0].GetString();
  }
  return {};
}

/// Reads the links POD_NAMESPACE_CONTAINER-ID.log of all containers on the node.
std::map<std::string, CgroupNames, std::less<>> kubernetes_names(const std::string& directory) {
  std::map<std::string, CgroupNames, std::less<>> all;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    auto name = it->path().filename().string();
    if (!name.ends_with(".log") || name.size() < kIdDigits + 8) continue;
    name.resize(name.size() - 4);
    auto id = name.substr(name.size() - kIdDigits);
    auto first = name.find('_'), second = name.find('_', first + 1);
    if (!is_id(id) || second == name.npos || second + 2 + kIdDigits > name.size()) continue;
    auto& names = all[id];
    names.container = name.substr(second + 1, name.size() - kIdDigits - second - 2);
    names.pod = name.substr(0, first);
  }
  return all;
}

}  // namespace

CgroupNames parse_cgroup_path(std::string_view path) {
  CgroupNames names;
  names.path = path;
  for (auto rest = path; !rest.empty();) {
    auto part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    if (auto id = container_id(part); !id.empty()) {
      names.container_id = id;
      continue;  // the runtime made this scope; cgroups below it are the container's
    }
    if (!names.container_id.empty()) break;
    if (auto uid = pod_uid(part); !uid.empty()) names.pod_uid = uid;
    if (is_unit(part)) names.unit = part;
  }
  return names;
}

Containers::Containers(ContainerFiles files) : files_(std::move(files)) {
  if (!files_.hierarchy.empty()) return;
  if (auto mount = cgroup2_mount()) files_.hierarchy = *mount;
}

void Containers::complete(CgroupNames& names) {
  if (names.container_id.empty()) return;
  if (auto found = kubernetes_.find(names.container_id); found != kubernetes_.end()) {
    names.container = found->second.container;
    names.pod = found->second.pod;
  }
  if (names.container.empty()) names.container = docker_name(files_.docker, names.container_id);
  if (names.container.empty()) names.container = podman_name(files_.podman, names.container_id);
}

void Containers::look() {
  looked_ns_ = monotonic_ns();
  if (files_.hierarchy.empty()) return;
  kubernetes_ = kubernetes_names(files_.kubernetes);
  if (known_.size() > kMostCgroups) known_.clear();  // this drops removed cgroups, too
  auto add = [&](const std::string& directory) {
    struct stat st {};
    if (stat(directory.c_str(), &st) != 0) return;
    auto path = directory.substr(files_.hierarchy.size());
    auto [at, fresh] = known_.try_emplace(st.st_ino);
    if (!fresh && at->second.path == path) return;
    at->second = parse_cgroup_path(path.empty() ? "/" : path);
    complete(at->second);
  };
  add(files_.hierarchy);
  std::error_code error;
  for (fs::recursive_directory_iterator it(files_.hierarchy, error), end; !error && it != end;
       it.increment(error))
    if (std::error_code ignored; it->is_directory(ignored)) add(it->path().string());
}

const CgroupNames& Containers::of(std::uint64_t cgroup) {
  auto found = known_.find(cgroup);
  if (found != known_.end()) return found->second;
  static const CgroupNames kNone;
  if (looked_ns_ && monotonic_ns() - looked_ns_ < kBetweenLooks) return kNone;
  look();
  found = known_.find(cgroup);
  return found == known_.end() ? kNone : found->second;
}

std::vector<CgroupNames> Containers::all() {
  look();
  std::vector<CgroupNames> names;
  for (auto& [id, found] : known_) names.push_back(found);
  return names;
}

Result<std::string> Containers::find(
    std::string_view kind, std::string_view wanted,
    const std::function<std::string(const CgroupNames&)>& matches) {
  look();
  std::set<std::string> paths;
  for (auto& [id, names] : known_)
    if (auto path = matches(names); !path.empty()) paths.insert(path);
  if (paths.empty())
    return Error{fmt::format("--{} {}: there is none here", kind, wanted),
                 files_.hierarchy.empty() ? "no cgroup version 2 hierarchy is mounted" : "",
                 "--cgroup takes a path", kUsage};
  if (paths.size() > 1)
    return Error{fmt::format("--{} {}: there are {} of them", kind, wanted, paths.size()),
                 fmt::format("{}", fmt::join(paths, ", ")), "choose one with --cgroup PATH",
                 kUsage};
  return files_.hierarchy + *paths.begin();
}

namespace {

/// The path up to the first directory for which `is_it` is true, without those below it.
std::string up_to(const std::string& path, const std::function<bool(std::string_view)>& is_it) {
  for (std::size_t at = 1; at < path.size();) {
    auto end = std::min(path.find('/', at), path.size());
    if (is_it(std::string_view(path).substr(at, end - at))) return path.substr(0, end);
    at = end + 1;
  }
  return {};
}

}  // namespace

Result<std::string> Containers::find_container(std::string_view name_or_id) {
  return find("container", name_or_id, [&](const CgroupNames& n) {
    bool by_id = name_or_id.size() >= 4 && n.container_id.starts_with(name_or_id);
    if (n.container_id.empty() || !(by_id || n.container == name_or_id)) return std::string();
    return up_to(n.path, [&](auto part) { return container_id(part) == n.container_id; });
  });
}

Result<std::string> Containers::find_pod(std::string_view name_or_uid) {
  return find("pod", name_or_uid, [&](const CgroupNames& n) {
    if (n.pod_uid.empty() || !(n.pod_uid == name_or_uid || n.pod == name_or_uid))
      return std::string();
    return up_to(n.path, [&](auto part) { return pod_uid(part) == n.pod_uid; });
  });
}

Result<std::string> Containers::find_unit(std::string_view name) {
  auto whole = is_unit(name) ? std::string(name) : fmt::format("{}.service", name);
  return find("unit", name, [&](const CgroupNames& n) {
    return n.unit == whole ? up_to(n.path, [&](auto part) { return part == whole; })
                           : std::string();
  });
}

}  // namespace coretap
