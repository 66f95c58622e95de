// The workloads `tcp` (its pid is the client's, a child serves), `tcpio` (its pid is the writer's,
// a child reads), `sockets` and `queues`: each in a private network namespace.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "../harness.hpp"
#include "coretap/fd.hpp"

namespace coretap::tooltest {

struct Family {
  std::string name, address;
  std::uint64_t ip;
  /// Both ends of a connection, as in lines.
  std::string ends() const {
    return "ip " + std::to_string(ip) + " local_address " + address + " remote_address " + address +
           " ";
  }
};
inline const Family kFour{"4", "127.0.0.1", 4}, kSix{"6", "::1", 6},
    kMapped{"mapped", "127.0.0.1", 4};

inline Observed watch(const std::vector<Strings>& tools, const Strings& workload) {
  return watch_all({{workload, tools}}, {})[0];
}
inline Observed watch(const std::vector<Strings>& tools, const std::string& options,
                      const Family& family) {
  return watch(tools, "tcp " + options + " --family " + family.name);
}

/// The lines about the workload's connections.
inline std::vector<Json> own(const Observed& seen, const Report& report) {
  return lines_with(report.body, {{"netns", seen.netns}});
}
inline std::vector<Json> own(const Observed& seen, std::size_t tool = 0) {
  return own(seen, seen.report(tool));
}

/// Ports of the clients, in the order of the sessions.
inline std::vector<std::uint64_t> client_ports(const Json& truth) {
  std::vector<std::uint64_t> ports;
  for (auto& port : truth["client_ports"].items()) ports.push_back(port.u64());
  return ports;
}
inline std::uint64_t client_port(const Observed& seen) { return client_ports(seen.truth).at(0); }

// Sockets of the test itself, at 127.0.0.1.

class Listener {
 public:
  explicit Listener(int backlog) {
    socklen_t size = sizeof address_;
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    if (::bind(socket_.get(), address, size) || ::listen(socket_.get(), backlog) ||
        ::getsockname(socket_.get(), address, &size))
      throw std::runtime_error("cannot listen");
  }
  std::uint16_t port() const { return ntohs(address_.sin_port); }
  Fd accept() const { return Fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  /// Without waiting for an answer.
  Fd connect() const {
    Fd from(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(from.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_) &&
        errno != EINPROGRESS)
      throw std::runtime_error("cannot connect");
    return from;
  }

 private:
  Fd socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address_{};
};

// For rows of the stress tests.

inline stress::Truth for_each_client(std::uint64_t lines) {
  return
      [lines](stress::Load& load) { return lines * client_ports(load.workload().truth()).size(); };
}
inline stress::Row sessions(std::uint64_t events, std::uint64_t lines, const Strings& pids = {},
                            const std::string& more = "") {
  return event_row("tcp --sessions {n} --client-bytes 10 --server-bytes 10 " + more, events,
                   for_each_client(lines), {}, pids);
}

}  // namespace coretap::tooltest
