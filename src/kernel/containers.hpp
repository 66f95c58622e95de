// What cgroups are: containers, pods and systemd units. From the cgroup's path, and from files that
// container runtimes keep; no daemon is asked.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

/// Of a cgroup. Empty: it is none, or the name is not known.
struct CgroupNames {
  std::string path;  ///< below the version 2 hierarchy, as in /proc/PID/cgroup: "/system.slice"
  std::string container_id;  ///< 64 hexadecimal digits
  std::string container;     ///< its name
  std::string pod;           ///< of Kubernetes: its name
  std::string pod_uid;       ///< as the API writes it, with hyphens
  std::string unit;          ///< of systemd: "nginx.service"
};

/// What the path alone says. Forms: systemd's and cgroupfs' of Docker, Podman, containerd, CRI-O
/// and Kubernetes.
CgroupNames parse_cgroup_path(std::string_view path);

/// Where files are; others in tests.
struct ContainerFiles {
  std::string hierarchy;  ///< of cgroups, version 2; empty: where it is mounted
  std::string docker = "/var/lib/docker/containers";
  std::string podman = "/var/lib/containers/storage/overlay-containers/containers.json";
  std::string kubernetes = "/var/log/containers";
};

class Containers {
 public:
  explicit Containers(ContainerFiles files = {});

  /// By the cgroup's id; known from then on. One that has gone before it is looked up has no names.
  const CgroupNames& of(std::uint64_t cgroup);

  /// Of all cgroups that are there now.
  std::vector<CgroupNames> all();

  /// The cgroup of the container with this name, or with an id that begins so; of the pod with this
  /// name or uid; of the unit, whose ".service" may be left out.
  Result<std::string> find_container(std::string_view name_or_id);
  Result<std::string> find_pod(std::string_view name_or_uid);
  Result<std::string> find_unit(std::string_view name);

 private:
  void look();
  void complete(CgroupNames& names);
  Result<std::string> find(std::string_view kind, std::string_view wanted,
                           const std::function<std::string(const CgroupNames&)>& matches);

  ContainerFiles files_;
  std::map<std::uint64_t, CgroupNames> known_;
  std::map<std::string, CgroupNames, std::less<>> kubernetes_;  ///< by container id
  std::uint64_t looked_ns_ = 0;
};

}  // namespace coretap
