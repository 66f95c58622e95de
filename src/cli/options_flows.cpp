// Which TCP connections.
#include "cli/option_parts.hpp"

namespace coretap::shared {

namespace {
Option ip_version(char letter, std::string_view name, std::string_view doc, std::uint32_t version) {
  auto o = same_everywhere(flag(letter, name, doc));
  o.apply = [=](Config& c, std::string_view) -> Result<void> {
    if (c.ip && c.ip != version) return usage("--ipv4 and --ipv6 cannot be used together");
    c.ip = version;
    return {};
  };
  return o;
}

Option ports(char letter, std::string_view name, std::string_view doc,
             std::vector<std::uint32_t> Config::*member) {
  auto option = same_everywhere(
      value(letter, name, "PORT,...", doc, [=](Config& c, std::string_view text) -> Result<void> {
        auto list = take_list(name, text, UINT16_MAX);
        if (!list) return list.error();
        auto& all = c.*member;
        all.insert(all.end(), list->begin(), list->end());
        return {};
      }));
  option.adds_up = true;
  return option;
}
}  // namespace

Option ipv4() { return ip_version('4', "ipv4", "only IPv4", 4); }
Option ipv6() { return ip_version('6', "ipv6", "only IPv6", 6); }
Option local_ports(char letter) {
  return ports(letter, "localport", "only these local ports", &Config::local_ports);
}
Option remote_ports(char letter) {
  return ports(letter, "remoteport", "only these remote ports", &Config::remote_ports);
}

}  // namespace coretap::shared
