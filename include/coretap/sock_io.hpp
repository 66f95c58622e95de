// Sends and receives on TCP sockets: shared by tools with bpf/lib/net/sock_io.bpf.h.
#pragma once
#include <vector>

#include "coretap/hooks.hpp"

namespace coretap::sock_io {

/// A tool that counts only one direction omits the other one's hooks.
enum Direction { sends, both };

inline std::vector<Hook> hooks(Direction which) {
  // The tracepoints cover both IP versions.
  const Candidate seen{{}, {has_arguments("sock_send_length", 3)}};
  std::vector<Hook> all = {
      {.name = "sends",
       .candidates = {{{ProgramName("on_send")}}, {{ProgramName("on_send_ipv4")}}},
       .instead = "tcplife shows the bytes of each TCP session when it ends, on any kernel"},
      {.name = "sends, IPv6",
       .candidates = {seen, {{ProgramName("on_send_ipv6")}}},
       .optional = "sends of IPv6 sockets are not counted"},
      {.name = "sends of pages",
       .candidates = {{{ProgramName("on_send_page")}},
                      {{}, {{Need::function, "splice_to_socket"}}}},
       .optional = "sendfile(2) to sockets is not counted"}};
  if (which == sends) return all;
  all.push_back(
      {.name = "receives",
       .candidates = {{{ProgramName("on_receive")}}, {{ProgramName("on_receive_ipv4")}}}});
  all.push_back({.name = "receives, IPv6",
                 .candidates = {seen, {{ProgramName("on_receive_ipv6")}}},
                 .optional = "receives of IPv6 sockets are not counted"});
  all.push_back({.name = "splices from sockets",
                 .candidates = {{{ProgramName("on_splice")}}},
                 .optional = "splice(2) from sockets is not counted"});
  return all;
}

}  // namespace coretap::sock_io
