// The process that answers HTTP, and pushes by it: no capabilities, no descriptors of BPF, few
// system calls.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.hpp"
#include "coretap/result.hpp"
#include "serve/config.hpp"

namespace coretap::serve {

/// "127.0.0.1:9961", "[::1]:9961", "unix:/run/coretap/metrics", bound and listening. Where a
/// service manager passes a socket (LISTEN_FDS), that one.
Result<Fd> listening_socket(const std::string& address);

/// Answers GET and HEAD of /metrics and /debug/pprof/NAME until the supervisor ends; never returns.
[[noreturn]] void run_listener(Fd socket, Fd news, const std::optional<Otlp>& otlp,
                               std::uint64_t served_since_ns);

}  // namespace coretap::serve
