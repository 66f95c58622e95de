// Maps cgroups to containers, pods and systemd units, using the cgroup's path and files of
// container runtimes; no daemon is queried.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

/// Names of a cgroup. Empty: not of that kind, or the name is not known.
struct CgroupNames {
  std::string path;  ///< relative to the cgroup v2 mount, as in /proc/PID/cgroup: "/system.slice"
  std::string container_id;  ///< 64 hexadecimal digits
  std::string container;     ///< the container's name
  std::string pod;           ///< the Kubernetes pod's name
  std::string pod_uid;       ///< as in the Kubernetes API, with hyphens
  std::string unit;          ///< the systemd unit: "nginx.service"
};

/// Parses the path alone. Forms: those of systemd and cgroupfs of Docker, Podman, containerd, CRI-O
/// and Kubernetes.
CgroupNames parse_cgroup_path(std::string_view path);

/// Locations of the files; tests use others.
struct ContainerFiles {
  std::string hierarchy;  ///< of cgroup v2; empty: where it is mounted
  std::string docker = "/var/lib/docker/containers";
  std::string podman = "/var/lib/containers/storage/overlay-containers/containers.json";
  std::string kubernetes = "/var/log/containers";
};

class Containers {
 public:
  explicit Containers(ContainerFiles files = {});

  /// Names for a cgroup id, cached. A cgroup that is removed before the first lookup has no names.
  const CgroupNames& of(std::uint64_t cgroup);

  /// Names of all existing cgroups.
  std::vector<CgroupNames> all();

  /// The cgroup of the container with this name, or with an id that begins with it; of the pod with
  /// this name or uid; of the unit, whose ".service" may be omitted.
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
