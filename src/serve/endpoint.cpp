#include "serve/endpoint.hpp"

#include <event2/util.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "coretap/option_parts.hpp"
#include "coretap/parse.hpp"

namespace coretap::serve {

namespace {

constexpr std::string_view kHttp = "http://", kHttps = "https://", kUnix = "unix:";
constexpr std::string_view kUsualPort = "4318";
constexpr char kForms[] =
    "http://127.0.0.1:4318, http://[::1]:4318, http://localhost:4318 or unix:/run/otelcol.sock";

Result<Endpoint> unix_endpoint(std::string_view path) {
  Endpoint e{.host = "localhost"};
  auto& un = reinterpret_cast<sockaddr_un&>(e.address);
  if (path.empty() || path[0] != '/' || path.size() >= sizeof un.sun_path)
    return usage(fmt::format("endpoint: '{}' is no absolute path of a socket", path), kForms);
  un.sun_family = AF_UNIX;
  memcpy(un.sun_path, path.data(), path.size());
  e.size = sizeof un;
  return e;
}

}  // namespace

Result<Endpoint> parse_endpoint(const std::string& text) {
  std::string_view rest = text;
  if (rest.starts_with(kUnix)) return unix_endpoint(rest.substr(kUnix.size()));
  if (rest.starts_with(kHttps))
    return usage("endpoint: coretap has no TLS",
                 "push to an OpenTelemetry Collector on this machine, which has it: "
                 "http://127.0.0.1:4318");
  if (!rest.starts_with(kHttp))
    return usage(fmt::format("endpoint: '{}' is no address to push to", text), kForms);
  rest.remove_prefix(kHttp.size());
  Endpoint e;
  e.host = rest.substr(0, rest.find('/'));
  e.path = rest.substr(e.host.size());
  while (e.path.ends_with('/')) e.path.pop_back();
  if (std::ranges::any_of(e.path,
                          [](char c) { return c <= ' ' || c > '~' || c == '?' || c == '#'; }))
    return usage(fmt::format("endpoint: '{}' is no path of a URL", e.path));
  auto colon = e.host.rfind(':');
  if (colon == e.host.npos || e.host.ends_with(']')) {
    colon = e.host.size();
    e.host += fmt::format(":{}", kUsualPort);
  }
  auto port = parse_unsigned(std::string_view(e.host).substr(colon + 1));
  auto address = e.host;
  constexpr std::string_view kLocal = "localhost";
  if (address.substr(0, colon) == kLocal) address.replace(0, kLocal.size(), "127.0.0.1");
  int size = sizeof e.address;
  if (!port || !*port || *port > 65535)
    return usage(fmt::format("endpoint: '{}' has no port", text), kForms);
  // Without brackets the end of an IPv6 address would be parsed as a port.
  const bool is_clear = e.host.starts_with('[') || e.host.find(':') == colon;
  if (!is_clear || evutil_parse_sockaddr_port(address.c_str(),
                                              reinterpret_cast<sockaddr*>(&e.address), &size) != 0)
    return usage(
        fmt::format("endpoint: '{}' is no address: names of hosts are not resolved", e.host),
        kForms);
  e.size = static_cast<socklen_t>(size);
  return e;
}

}  // namespace coretap::serve
