// The workload `tcpio`: messages over one TCP connection in a network namespace of its own.
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "../harness.hpp"

namespace coretap::tooltest {

/// Its pid is the writer's; a child of it reads.
struct Messages : Workload {
  explicit Messages(Strings options) : Workload("tcpio", std::move(options)) {
    struct stat st {};
    if (::stat(("/proc/" + id() + "/ns/net").c_str(), &st)) throw Skip("no network namespaces");
    netns = st.st_ino;
    reader = ready()["reader_pid"].u64();
    port = ready()["port"].u64();
  }

  std::uint64_t netns, reader, port;
};

}  // namespace coretap::tooltest
