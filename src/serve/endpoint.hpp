// The destination of OTLP.
#pragma once
#include <sys/socket.h>

#include <string>

#include "coretap/result.hpp"

namespace coretap::serve {

struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::string host;  ///< for the Host header
  std::string path;  ///< prefix of /v1/metrics; may be empty
};

/// "http://127.0.0.1:4318", "http://[::1]:8428/opentelemetry", "unix:/run/otelcol.sock". Names
/// other than localhost are refused: resolving them would block, and needs more system calls.
Result<Endpoint> parse_endpoint(const std::string& text);

}  // namespace coretap::serve
