#include "coretap/fields.hpp"

namespace coretap {

std::string path_of(std::string_view components, bool cut) {
  std::string path = cut ? "..." : "";
  path.reserve(components.size() + 4);
  while (!components.empty()) {
    components.remove_suffix(1);
    auto before = components.rfind('\0');
    auto from = before == components.npos ? 0 : before + 1;
    path += '/';
    path += components.substr(from);
    components = components.substr(0, from);
  }
  return path.empty() ? "/" : path;
}

}  // namespace coretap
