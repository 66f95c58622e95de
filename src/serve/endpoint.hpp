// The destination of OTLP.
#pragma once
#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>

#include "coretap/result.hpp"

namespace coretap::serve {

struct SocketAddress {
  sockaddr_storage address{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

/// Of a socket with an absolute path; none: it is relative or too long.
std::optional<SocketAddress> unix_address(std::string_view path);
/// "127.0.0.1:9961", "[::1]:9961"; none: anything else.
std::optional<SocketAddress> ip_address(const std::string& text);

struct Endpoint : SocketAddress {
  std::string host;  ///< for the Host header
  std::string path;  ///< prefix of /v1/metrics; may be empty
};

/// "http://127.0.0.1:4318", "http://[::1]:8428/opentelemetry", "unix:/run/otelcol.sock". Names
/// other than localhost are refused: resolving them would block, and needs more system calls.
Result<Endpoint> parse_endpoint(const std::string& text);

}  // namespace coretap::serve
