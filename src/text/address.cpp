#include <arpa/inet.h>
#include <netinet/in.h>

#include <fmt/format.h>

#include "coretap/net.hpp"

namespace coretap {

namespace {

void append_number(std::string& text, unsigned number) {
  fmt::format_int digits(number);
  text.append(digits.data(), digits.size());
}

/// inet_ntop() takes five times as long, and lines of frequent events have two addresses.
std::string ipv4_address(const void* bytes) {
  const auto* byte = static_cast<const unsigned char*>(bytes);
  std::string text;
  for (int i = 0; i < 4; i++) {
    if (i) text += '.';
    append_number(text, byte[i]);
  }
  return text;
}

}  // namespace

std::string ip_address(unsigned version, const void* bytes) {
  if (version != 6) return ipv4_address(bytes);
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, bytes, text, sizeof text);
  return text;
}

std::string ip_endpoint(unsigned version, const void* bytes, std::uint16_t port) {
  auto text = ip_address(version, bytes);
  if (version == 6) text = '[' + text + ']';
  text += ':';
  append_number(text, port);
  return text;
}

std::string tcp_state(unsigned state) {
  constexpr std::string_view kStates[] = {
      "",      "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2",   "TIME_WAIT",
      "CLOSE", "CLOSE_WAIT",  "LAST_ACK", "LISTEN",   "CLOSING",   "NEW_SYN_RECV"};
  return state && state < std::size(kStates) ? std::string(kStates[state]) : std::to_string(state);
}

std::string ip_protocol(unsigned protocol) {
  constexpr unsigned kMptcp = 262;  // IPPROTO_MPTCP, missing in older headers
  constexpr std::pair<unsigned, std::string_view> kProtocols[] = {
      {IPPROTO_ICMP, "ICMP"}, {IPPROTO_TCP, "TCP"},         {IPPROTO_UDP, "UDP"},
      {IPPROTO_DCCP, "DCCP"}, {IPPROTO_ICMPV6, "ICMPv6"},   {IPPROTO_SCTP, "SCTP"},
      {kMptcp, "MPTCP"},      {IPPROTO_UDPLITE, "UDPLITE"}, {IPPROTO_RAW, "RAW"}};
  for (auto& [number, name] : kProtocols)
    if (number == protocol) return std::string(name);
  return std::to_string(protocol);
}

}  // namespace coretap
