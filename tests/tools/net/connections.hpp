// The workload `tcp`, which makes connections in a network namespace of its own.
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "../harness.hpp"

namespace coretap::tooltest {

/// Its pid is the client's; a child of it serves.
struct Connections : Workload {
  explicit Connections(Strings options) : Workload("tcp", std::move(options)) {
    struct stat st {};
    if (::stat(("/proc/" + id() + "/ns/net").c_str(), &st)) throw Skip("no network namespaces");
    netns = st.st_ino;
    server_pid = ready()["server_pid"].u64();
    server_port = ready()["server_port"].u64();
  }

  /// The lines about its own connections.
  std::vector<Json> own(const Report& report) const {
    std::vector<Json> lines;
    for (auto& line : report.body)
      if (line["netns"].u64() == netns) lines.push_back(line);
    return lines;
  }

  std::uint64_t netns, server_pid, server_port;
};

}  // namespace coretap::tooltest
