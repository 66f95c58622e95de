// Connections: the fields of a struct flow (bpf/lib/net/flow.h), the same in every tool.
#pragma once
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/fields.hpp"
#include "lib/net/flow.h"
#include "lib/net/retransmit.h"

namespace coretap {

/// "192.0.2.1", "2001:db8::1"; `bytes`: 4 or 16 in network order.
std::string ip_address(unsigned version, const void* bytes);
/// "192.0.2.1:80", "[2001:db8::1]:80"
std::string ip_endpoint(unsigned version, const void* bytes, std::uint16_t port);
/// "ESTABLISHED"; numbers are the same in all kernels.
std::string tcp_state(unsigned state);
/// By enum retransmit_cause.
inline constexpr std::string_view kRetransmitCauses[] = {"timeout",    "fast",    "rack",
                                                         "loss_probe", "syn_ack", "other"};
static_assert(std::size(kRetransmitCauses) == RETRANSMIT_CAUSES);
/// "TCP" for a socket's protocol; unknown numbers stay numbers.
std::string ip_protocol(unsigned protocol);

namespace detail {
template <auto Flow, class Part>
Field flow_field(std::string_view key, std::string_view title, Format format, std::string_view doc,
                 Part) {
  using Record = typename member_of<decltype(Flow)>::record;
  return {key, title, format, doc, [](const void* record, const FieldContext&) {
            return to_value(Part{}(static_cast<const Record*>(record)->*Flow));
          }};
}
}  // namespace detail

/// Fields of the flow that is a member of the record: net::local_address<&Event::flow>().
namespace net {
/// Under the title used by similar tools.
inline Field titled(Field field, std::string_view title) {
  field.title = title;
  return field;
}

template <auto Flow>
Field ip_version() {
  return detail::flow_field<Flow>("ip", "IP", {Format::number, -2},
                                  "version of the protocol on the wire, 4 or 6",
                                  [](const flow& f) { return f.ip; });
}
template <auto Flow>
Field local_address() {
  return detail::flow_field<Flow>("local_address", "LADDR", as::address, "local address",
                                  [](const flow& f) { return ip_address(f.ip, f.local); });
}
template <auto Flow>
Field local_port() {
  return detail::flow_field<Flow>("local_port", "LPORT", as::port, "local port",
                                  [](const flow& f) { return f.lport; });
}
template <auto Flow>
Field remote_address() {
  return detail::flow_field<Flow>("remote_address", "RADDR", as::address, "remote address",
                                  [](const flow& f) { return ip_address(f.ip, f.remote); });
}
template <auto Flow>
Field remote_port() {
  return detail::flow_field<Flow>("remote_port", "RPORT", as::port, "remote port",
                                  [](const flow& f) { return f.rport; });
}
/// Both parts in one column; JSON and CSV have them separately.
template <auto Flow>
Field local_endpoint() {
  return detail::flow_field<Flow>("local", "LADDR:LPORT", as::endpoint, "local address and port",
                                  [](const flow& f) { return ip_endpoint(f.ip, f.local, f.lport); })
      .in_text();
}
template <auto Flow>
Field remote_endpoint() {
  return detail::flow_field<Flow>(
             "remote", "RADDR:RPORT", as::endpoint, "remote address and port",
             [](const flow& f) { return ip_endpoint(f.ip, f.remote, f.rport); })
      .in_text();
}
/// local_address() to remote_port(), in addition to the endpoints.
template <auto Flow>
std::vector<Field> parts() {
  return {local_address<Flow>().with("json"), local_port<Flow>().with("json"),
          remote_address<Flow>().with("json"), remote_port<Flow>().with("json")};
}
template <auto Flow>
Field namespace_id() {
  return detail::flow_field<Flow>("netns", "NETNS", as::number,
                                  "network namespace: the inode of /proc/PID/ns/net",
                                  [](const flow& f) { return f.netns; })
      .with("json");
}
}  // namespace net

}  // namespace coretap
