// Where OTLP is pushed to.
#pragma once
#include <sys/socket.h>

#include <string>

#include "coretap/result.hpp"

namespace coretap::serve {

struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::string host;  ///< of the header Host
  std::string path;  ///< what comes before /v1/metrics; may be empty
};

/// "http://127.0.0.1:4318", "http://[::1]:8428/opentelemetry", "unix:/run/otelcol.sock". Names but
/// localhost are refused: to resolve them would take the process' time and more system calls.
Result<Endpoint> parse_endpoint(const std::string& text);

}  // namespace coretap::serve
