#include "rights.hpp"

#include "coretap/tool.hpp"
#include "harness.hpp"
#include "program/needed_capabilities.hpp"

namespace coretap::tooltest {

const std::vector<Asked>& asked_by(const std::string& tool) {
  static std::map<std::string, std::vector<Asked>> known;
  if (auto at = known.find(tool); at != known.end()) return at->second;
  std::map<std::pair<int, bool>, Asked> asked;
  for (auto& need : needed_capabilities(build(*find_tool(tool)))) {
    auto number = static_cast<int>(need.capability);
    bool probes = contains(need.purpose, "user functions");
    auto name = std::string(name_of(need.capability));
    auto& one =
        asked.try_emplace({number, probes}, Asked{number, name, false, probes}).first->second;
    one.always |= need.always;
  }
  auto& all = known[tool];
  for (auto& [key, one] : asked) all.push_back(one);
  return all;
}

std::uint64_t capabilities_of(pid_t pid, const std::string& set) {
  auto status = slurp("/proc/" + std::to_string(pid) + "/status");
  auto at = status.find("\n" + set + ":");
  if (at == std::string::npos) throw std::runtime_error("no " + set + " of " + std::to_string(pid));
  return std::stoull(status.substr(at + set.size() + 2), nullptr, 16);
}

}  // namespace coretap::tooltest
