// Options that select connections.
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "coretap/option_parts.hpp"
#include "coretap/parse.hpp"

namespace coretap::shared {

namespace {
constexpr std::uint64_t kMostPids = 1
                                    << 22;  // PID_MAX_LIMIT; inode numbers of namespaces are larger

Option ip_version(char letter, std::string_view name, std::string_view doc, std::uint32_t version) {
  auto o = same_everywhere(flag(letter, name, doc));
  o.apply = [=](Config& c, std::string_view) -> Result<void> {
    if (c.flows.ip && c.flows.ip != version)
      return usage("--ipv4 and --ipv6 cannot be used together");
    c.flows.ip = version;
    return {};
  };
  return o;
}

/// Adds "80" or "8000-8100" to `all`.
bool take_ports(std::string_view part, std::vector<std::uint32_t>& all) {
  auto dash = part.find('-');
  auto first = parse_unsigned(part.substr(0, dash));
  auto last = dash == std::string_view::npos ? first : parse_unsigned(part.substr(dash + 1));
  if (!first || !last || *first == 0 || *last > UINT16_MAX || *first > *last) return false;
  for (auto port = *first; port <= *last; port++) all.push_back(static_cast<std::uint32_t>(port));
  return true;
}

Option ports(char letter, std::string_view name, std::string_view doc,
             std::vector<std::uint32_t> Config::Flows::*member) {
  return same_everywhere(comma_list(
      letter, name, "PORT,...", doc,
      [=](Config& c, std::string_view part) { return take_ports(part, c.flows.*member); },
      "ports or ranges from 1 to 65535", fmt::format("for example --{} 80,8000-8100", name)));
}

Option addresses(char letter, std::string_view name, std::string_view doc,
                 std::vector<AddressPrefix> Config::Flows::*member) {
  return same_everywhere(comma_list(
      letter, name, "ADDRESS,...", doc,
      [=](Config& c, std::string_view part) {
        auto prefix = parse_address_prefix(part);
        if (prefix) (c.flows.*member).push_back(*prefix);
        return prefix.has_value();
      },
      "addresses or prefixes", fmt::format("for example --{} 192.0.2.1,2001:db8::/32", name)));
}

/// Inode number of a network namespace, given as a name of `ip netns`, a pid, a path or the number.
Result<std::uint32_t> namespace_inode(std::string_view text) {
  auto number = parse_unsigned(text);
  if (number && *number > kMostPids && *number <= UINT32_MAX)
    return static_cast<std::uint32_t>(*number);
  auto path = number                  ? fmt::format("/proc/{}/ns/net", *number)
              : text.starts_with('/') ? std::string(text)
                                      : fmt::format("/run/netns/{}", text);
  struct stat st {};
  if (stat(path.c_str(), &st))
    return usage(fmt::format("--netns: '{}' is not a network namespace: {}: {}", text, path,
                             strerror(errno)),
                 "give a name of `ip netns list`, a process id, a file or an inode");
  return static_cast<std::uint32_t>(st.st_ino);
}
}  // namespace

Option ipv4() { return ip_version('4', "ipv4", "only IPv4", 4); }
Option ipv6() { return ip_version('6', "ipv6", "only IPv6", 6); }
Option local_ports(char letter, std::string_view name) {
  return ports(letter, name, "only these local ports, or ranges such as 8000-8100",
               &Config::Flows::local_ports);
}
Option remote_ports(char letter, std::string_view name) {
  return ports(letter, name, "only these remote ports, or ranges such as 8000-8100",
               &Config::Flows::remote_ports);
}
Option local_addresses(char letter) {
  return addresses(letter, "laddr", "only these local addresses, or prefixes such as 192.0.2.0/24",
                   &Config::Flows::local_addresses);
}
Option remote_addresses(char letter) {
  return addresses(letter, "raddr", "only these remote addresses, or prefixes such as 192.0.2.0/24",
                   &Config::Flows::remote_addresses);
}
Option netns() {
  return same_everywhere(value(0, "netns", "NAMESPACE",
                               "only this network namespace: a name, a process in it, a file or "
                               "an inode",
                               [](Config& c, std::string_view text) -> Result<void> {
                                 auto inode = namespace_inode(text);
                                 if (!inode) return inode.error();
                                 c.flows.netns = *inode;
                                 return {};
                               }));
}

std::vector<Option> flow_filters(char local_port, char remote_port) {
  return {ipv4(),
          ipv6(),
          local_ports(local_port),
          remote_ports(remote_port),
          local_addresses(),
          remote_addresses(),
          netns()};
}

}  // namespace coretap::shared
