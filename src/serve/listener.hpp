// The process that answers HTTP requests, and pushes data: no capabilities, no BPF descriptors, few
// system calls.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "coretap/fd.hpp"
#include "coretap/result.hpp"
#include "serve/config.hpp"

namespace coretap::serve {

/// "127.0.0.1:9961", "[::1]:9961", "unix:/run/coretap/metrics", bound and listening. If a service
/// manager passes a socket (LISTEN_FDS), returns that.
Result<Fd> listening_socket(const std::string& address);

/// Which requests for dumps are accepted.
struct DumpAccess {
  bool any = false;   ///< false: nothing is recorded
  std::string token;  ///< empty: only this machine
};

/// Answers GET and HEAD of /metrics and /debug/pprof/NAME, and POST of /dump, until the supervisor
/// ends; never returns.
[[noreturn]] void run_listener(Fd socket, Fd news, const std::optional<Otlp>& otlp,
                               const DumpAccess& dumps, std::uint64_t served_since_ns);

}  // namespace coretap::serve
