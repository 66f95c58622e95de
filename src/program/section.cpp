#include "program/section.hpp"

#include <fmt/format.h>

#include "kernel/kernel.hpp"

namespace coretap {

Section split_section(std::string_view section) {
  auto slash = section.find('/');
  if (slash == std::string_view::npos) return {section, {}};
  return {section.substr(0, slash), section.substr(slash + 1)};
}

std::vector<std::string> listed_tracepoints(std::string_view target) {
  auto category = target.substr(0, target.find('/') + 1);
  std::vector<std::string> all;
  for (target.remove_prefix(category.size());; target.remove_prefix(target.find(',') + 1)) {
    all.push_back(fmt::format("{}{}", category, target.substr(0, target.find(','))));
    if (target.find(',') == target.npos) return all;
  }
}

Result<int> listed_tracepoint_id(std::string_view name) {
  auto [category, event] = split_section(name);
  return tracepoint_id(category, event);
}

}  // namespace coretap
