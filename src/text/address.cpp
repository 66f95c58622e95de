#include <arpa/inet.h>
#include <netinet/in.h>

#include <fmt/format.h>

#include "coretap/net.hpp"

namespace coretap {

std::string ip_address(unsigned version, const void* bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(version == 6 ? AF_INET6 : AF_INET, bytes, text, sizeof text);
  return text;
}

std::string ip_endpoint(unsigned version, const void* bytes, std::uint16_t port) {
  auto address = ip_address(version, bytes);
  if (version == 6) address = '[' + address + ']';
  return fmt::format("{}:{}", address, port);
}

std::string tcp_state(unsigned state) {
  constexpr std::string_view kStates[] = {
      "",      "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2",   "TIME_WAIT",
      "CLOSE", "CLOSE_WAIT",  "LAST_ACK", "LISTEN",   "CLOSING",   "NEW_SYN_RECV"};
  return state && state < std::size(kStates) ? std::string(kStates[state]) : std::to_string(state);
}

std::string ip_protocol(unsigned protocol) {
  constexpr unsigned kMptcp = 262;  // IPPROTO_MPTCP, which older headers lack
  constexpr std::pair<unsigned, std::string_view> kProtocols[] = {
      {IPPROTO_ICMP, "ICMP"}, {IPPROTO_TCP, "TCP"},         {IPPROTO_UDP, "UDP"},
      {IPPROTO_DCCP, "DCCP"}, {IPPROTO_ICMPV6, "ICMPv6"},   {IPPROTO_SCTP, "SCTP"},
      {kMptcp, "MPTCP"},      {IPPROTO_UDPLITE, "UDPLITE"}, {IPPROTO_RAW, "RAW"}};
  for (auto& [number, name] : kProtocols)
    if (number == protocol) return std::string(name);
  return std::to_string(protocol);
}

}  // namespace coretap
