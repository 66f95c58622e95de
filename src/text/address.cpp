#include <arpa/inet.h>

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

}  // namespace coretap
